"""The one module of the probe that reads the time, so that tests can hold it."""

from time import perf_counter_ns as now_ns
from time import time as unix_seconds
from time import time_ns as unix_ns

__all__ = ["now_ns", "unix_ns", "unix_seconds"]
