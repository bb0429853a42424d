"""Who may look into this process where the kernel lets only ancestors do so (Yama, scope 1).

py-spy reads stacks from outside, and the monitor is seldom our ancestor. So the process of the
attached monitor is let in, with those that it starts, for as long as it watches: no other, and of
several monitors the one that came last. Which process that is, the kernel says of the socket's
other end (SO_PEERCRED): one that a peer names could be any. GPUWATCH_CONTROL=0 lets nobody in.
"""

import os
from collections.abc import Callable
from typing import Final

SCOPE_FILE: Final = "/proc/sys/kernel/yama/ptrace_scope"
ANCESTORS_ONLY: Final = "1"
"""At 0 nobody needs to be let in, at 2 and 3 nobody can be."""
NOBODY: Final = 0
_PR_SET_PTRACER: Final = 0x59616D61

Let = Callable[[int], None]


class Tracer:
    """The one process that is let in. Called on the publisher's thread only."""

    def __init__(self, let: Let | None = None, scope_file: str = SCOPE_FILE) -> None:
        self._let = let or _let_in
        wanted = os.environ.get("GPUWATCH_CONTROL") != "0"
        self._needed = wanted and _scope(scope_file) == ANCESTORS_ONLY
        self._pid = NOBODY

    def allow(self, pid: int) -> None:
        """From now on this process, as the kernel named it at the other end of the socket, and no
        other; with NOBODY, or once it has ended, none."""
        if not self._needed:
            return
        if pid != NOBODY and not _is_allowed(pid):
            pid = NOBODY
        if pid != self._pid:
            self._pid = pid
            self._let(pid)


def _scope(file: str) -> str:
    try:
        with open(file) as scope:
            return scope.read().strip()
    except OSError:
        return ""  # a kernel without Yama


def _is_allowed(pid: int) -> bool:
    """Whether it lives and, as seen from here, is our user's or root's: pids of another container
    mean somebody else. Not the first of all: everybody descends from that one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            lives = stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
        return pid > 1 and lives and os.stat(f"/proc/{pid}").st_uid in (os.getuid(), 0)
    except OSError:
        return False


def _let_in(pid: int) -> None:
    """What the kernel refuses stays as it was: the stacks' reader says so to the person."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
