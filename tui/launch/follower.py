"""Programs that leave nothing behind: one ends with who started it, also where that one is killed,
and what outlives the process that started it is found. Both on Linux alone."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2). The kernel counts the thread that starts the program as its parent."""
_PR_SET_CHILD_SUBREAPER: Final = 36


def follower() -> Callable[[], None] | None:
    """For `subprocess.Popen(preexec_fn=…)`: SIGTERM to the program when its parent dies. It stays
    with the program, and does not pass to what that starts. None where the system has no such."""
    if sys.platform != "linux":
        return None
    # Looked up here: the child of a fork should do little. A PyDLL keeps the interpreter locked.
    prctl, parent = ctypes.PyDLL(None).prctl, os.getpid()

    def follow() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before this
            os.kill(os.getpid(), signal.SIGTERM)

    return follow


@contextmanager
def orphans_taken() -> Iterator[None]:
    """Meanwhile a process below this one whose parent has ended becomes a child of this one."""
    if sys.platform != "linux":
        yield
        return
    prctl = ctypes.PyDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
