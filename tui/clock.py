"""The one place where the monitor reads the time, so that tests and replays can hold it."""

import os
import time


def now_ns() -> int:
    """The monotonic clock, ns. On Linux the same clock, and the same zero, as the probe's."""
    return time.perf_counter_ns()


def now_unix() -> float:
    """Seconds since 1970, for people, logs and the times of files; never used for a difference."""
    return time.time()


def since_boot_s() -> float:
    """Seconds since the machine was started, its sleep too: by these the kernel says when a thread
    began."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def own_cpu_ns() -> int:
    """CPU time that this process has used, ns: all its threads, and children that have ended."""
    of_children = os.times()
    children_s = of_children.children_user + of_children.children_system
    return time.process_time_ns() + int(children_s * 1e9)


def own_thread_cpu_ns() -> int:
    """CPU time that the calling thread has used, ns."""
    return time.thread_time_ns()
