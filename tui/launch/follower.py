"""A program that ends with who started it, also where that one is killed (on Linux)."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2). The kernel counts the thread that starts the program as its parent."""


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
