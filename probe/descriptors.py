"""The process's descriptors, which are the run's first: what the probe takes is spare and its own.

A run may be at its limit, and would fail where it would not have without us; and it may close what
it never opened (`os.closerange` in a daemon), after which our number is another file's.
"""

import os
import resource
from typing import Final

SPARE: Final = 32
"""So many stay free for the run, or the probe opens nothing."""


SPARE_BYTES: Final = 512 * 1024 * 1024
"""Of address space, where that is limited: a thread reserves 72 MB of it, nearly all unused."""


def check_address_space() -> None:
    """Raises OSError where the run is near a limit of it."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    with open("/proc/self/statm", "rb") as statm:
        taken = int(statm.read().split()[0]) * resource.getpagesize()
    if taken + SPARE_BYTES > limit:
        raise OSError("the address space is short (ulimit -v)")


class NoneSpare(OSError):
    """The run is near its limit of descriptors."""

    def __init__(self) -> None:
        super().__init__(f"fewer than {SPARE} file descriptors are free (ulimit -n)")


def check_spare(newest: int) -> None:
    """Raises NoneSpare if the descriptor just got, the lowest that was free, leaves too few."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and newest + SPARE >= limit:
        raise NoneSpare


def is_spare(some: int) -> bool:
    """Whether one more may be taken; `some` is any that is open."""
    try:
        newest = os.dup(some)
    except OSError:
        return False
    try:
        check_spare(newest)
    except NoneSpare:
        return False
    finally:
        os.close(newest)
    return True


def identity_of(descriptor: int) -> tuple[int, int] | None:
    """What file it is, to be compared later; None where it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino
