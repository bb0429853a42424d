"""Threads of the probe's own, which take none of the run's signals."""

import _thread
from _signal import (  # type: ignore[import-not-found]  # `signal` makes enumerations: 0.3 ms
    SIG_BLOCK,
    SIG_SETMASK,
    SIGBUS,
    SIGFPE,
    SIGILL,
    SIGSEGV,
    SIGSYS,
    SIGTRAP,
    pthread_sigmask,
    valid_signals,
)
from collections.abc import Callable
from typing import Final

_OF_THE_THREAD: Final = frozenset((SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS))
"""Signals of what a thread itself does; blocked, they would end the process without a handler."""


def start_thread(run: Callable[[], None]) -> int:
    """A thread that takes no signal; its identity. Raises RuntimeError where none can be had."""
    before = pthread_sigmask(SIG_BLOCK, valid_signals() - _OF_THE_THREAD)
    try:
        return _thread.start_new_thread(run, ())  # it inherits the mask
    finally:
        pthread_sigmask(SIG_SETMASK, before)
