"""Whether the kernel killed for want of memory, and what was full: by its own counters.

Who is killed so gets a signal 9 as from anybody. But the kernel counts: `oom_kill` of each cgroup
(memory.events; v1: memory.oom_control) for what it killed in there, `oom` of the one whose limit
was reached (v1: memory.failcnt), and in /proc/vmstat all that it killed on the machine. A counter
that has risen between the last look at a process and its end is taken for that end.
"""

from pathlib import Path
from typing import NamedTuple

from ..model.observations import FullMemory
from .system import CGROUP, cgroup_folders, counter_in, number_in


class OomKill(NamedTuple):
    """What was full."""

    full: FullMemory
    limit_bytes: int | None = None
    """Of the cgroup."""


class _Counts(NamedTuple):
    kills: int
    """In the cgroup of the process."""
    limits: tuple[int, ...]
    """How often the limit of each folder was reached, innermost first."""
    machine: int


class OomWatch:
    """Of one process, whose cgroups are asked for while it lives."""

    def __init__(self, pid: int, root: Path = CGROUP, proc: Path = Path("/proc")) -> None:
        self._folders = [one for one in cgroup_folders(pid, root, proc) if _has_memory(one)]
        self._vmstat = proc / "vmstat"
        self._before = self._counts()

    def look(self) -> None:
        """The process lives: what was counted so far was others' end."""
        self._before = self._counts()

    def killed(self) -> OomKill | None:
        """What was full as it ended; None where nothing was killed for memory."""
        before, now = self._before, self._counts()
        in_group, on_machine = now.kills > before.kills, now.machine > before.machine
        if not (in_group or (on_machine and not self._folders)):
            return None
        pairs = zip(self._folders, now.limits, before.limits, strict=True)
        reached = next((folder for folder, count, was in pairs if count > was), None)
        if reached is None:
            return OomKill("machine")
        limit = number_in(reached / "memory.max") or number_in(reached / "memory.limit_in_bytes")
        return OomKill("limit", limit)

    def _counts(self) -> _Counts:
        kills = _counter(self._folders[0], "oom_kill") if self._folders else 0
        limits = tuple(_reached(folder) for folder in self._folders)
        return _Counts(kills, limits, counter_in(self._vmstat, "oom_kill"))


def _has_memory(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("memory.events", "memory.oom_control"))


def _counter(folder: Path, name: str) -> int:
    return counter_in(folder / "memory.events", name) or counter_in(
        folder / "memory.oom_control", name
    )


def _reached(folder: Path) -> int:
    return counter_in(folder / "memory.events", "oom") or number_in(folder / "memory.failcnt") or 0
