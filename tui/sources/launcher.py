"""Who started the target: its launcher, and the other ranks of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import getpid
from typing import Final

import psutil

from tui.sources.gpu_target import environ_of
from tui.targets import is_python

NUMBERS: Final = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
"""What a launcher tells each rank. A scheduler may have told the launcher some of them."""
FIND_NS: Final = 10_000_000_000
"""Between two searches for ranks: each goes through all processes of the machine."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Another child of the launcher."""

    process: psutil.Process
    number: int
    """Its RANK."""


class Launcher:
    """The target's parent where that is a Python too, as torchrun and accelerate are: not a shell,
    and not this monitor, which starts demos."""

    def __init__(self, target: psutil.Process) -> None:
        self._target = target
        self._found_ns: int | None = None
        self.process: psutil.Process | None = None
        self.ranks: tuple[Rank, ...] = ()
        """As they were when they were last searched for."""

    def look(self, now_ns: int) -> None:
        """Search, if it is time to."""
        if self._found_ns is not None and now_ns - self._found_ns < FIND_NS:
            return
        self._found_ns = now_ns
        try:
            self.process = _python_parent(self._target)
            children = self.process.children() if self.process is not None else []
        except psutil.Error:
            self.process, children = None, []
        others = [child for child in children if child.pid != self._target.pid]
        inherited = environ_of(self.process.pid) if self.process else {}
        self.ranks = tuple(rank for child in others if (rank := _rank(child, inherited)))


def _python_parent(target: psutil.Process) -> psutil.Process | None:
    parent = target.parent()
    if parent is None or parent.pid == getpid() or not is_python(parent):
        return None
    return parent


def _rank(child: psutil.Process, inherited: Mapping[str, str]) -> Rank | None:
    """Of a child that was told something else than the launcher itself: its RANK alone may be the
    same, where a scheduler calls the launcher's machine 0."""
    own = environ_of(child.pid)
    told = own.get("RANK", "")
    numbered = any(own.get(name) != inherited.get(name) for name in NUMBERS)
    return Rank(child, int(told)) if told.isdecimal() and numbered else None
