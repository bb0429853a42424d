"""What a process has started, and what that has.

psutil finds them by the parent of every process of the machine, read anew for each look: 50 us
apiece, and a GPU machine runs thousands.
"""

import os
from pathlib import Path
from typing import Final

import psutil

PROC: Final = Path("/proc")
PARENT: Final = 1
"""Of the words of a stat line that follow the name: the state, the parent."""


class Descendants:
    """Reads the parents of those that are below it, and of those that came since the last look:
    nobody else can come to be below it."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._pid = pid
        self._proc = proc
        self._parents: dict[int, int] = {}
        """Of every process of the machine."""
        self._known: dict[int, psutil.Process] = {}
        """Those below it."""

    def look(self) -> list[psutil.Process]:
        """All of them that are there now, children before their own children. One that was there
        before is the same object, which remembers how it was."""
        self._read_parents()
        below: dict[int, list[int]] = {}
        for pid, parent in self._parents.items():
            below.setdefault(parent, []).append(pid)
        before, self._known = self._known, {}
        waiting = below.get(self._pid, [])
        while waiting:
            for pid in waiting:
                process = _process(pid, before.get(pid))
                if process is not None:
                    self._known[pid] = process
            waiting = [child for pid in waiting for child in below.get(pid, [])]
        return list(self._known.values())

    def _read_parents(self) -> None:
        there = {int(name) for name in os.listdir(self._proc) if name.isdecimal()}
        same = there & self._parents.keys() - self._known.keys()
        kept = {pid: self._parents[pid] for pid in same}
        for pid in there - same:
            parent = self._parent(pid)
            if parent is not None:
                kept[pid] = parent
        self._parents = kept

    def _parent(self, pid: int) -> int | None:
        try:
            line = (self._proc / str(pid) / "stat").read_bytes()
        except OSError:
            return None  # it has just ended
        return int(line.rpartition(b")")[2].split()[PARENT])


def _process(pid: int, before: psutil.Process | None) -> psutil.Process | None:
    """The pid of one that has ended may be another's by now."""
    if before is not None and before.is_running():
        return before
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
