"""Who started the target: its launcher, and the other ranks of it."""

import os
import re
import resource
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import getpid
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from ..discovery.command_lines import environ_of
from ..discovery.state_page import OpenPage, pages_of
from ..discovery.targets import PROC, is_own, is_python, stat_fields
from ..messages import Hello

NUMBERS: Final = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
"""What a launcher sets for each rank. A scheduler may have set some of them for the launcher."""
_TASKS: Final = re.compile(r"(?P<tasks>[0-9]{1,6})(?:\(x(?P<nodes>[0-9]{1,6})\))?")
FIND_NS: Final = 10_000_000_000
"""Between two searches for ranks: each goes through all processes of the machine."""


@dataclass(frozen=True, slots=True)
class SiblingRank:
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
        self.ranks: tuple[SiblingRank, ...] = ()
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


def _rank(child: psutil.Process, inherited: Mapping[str, str]) -> SiblingRank | None:
    """Of a child whose numbers differ from the launcher's: RANK alone may be the same, where a
    scheduler calls the launcher's machine 0."""
    own = environ_of(child.pid)
    rank = own.get("RANK", "")
    numbered = any(own.get(name) != inherited.get(name) for name in NUMBERS)
    return SiblingRank(child, int(rank)) if rank.isdecimal() and numbered else None


# The ranks of one job on this host: processes of the same launcher that have a state page.

ENDED: Final = ("Z", "X")
"""States of a process that has ended and is not reaped."""
STOPPED: Final = ("T", "t")
"""…and of one that a signal or a debugger holds."""


class Stat(NamedTuple):
    """What the kernel says of a process in one line."""

    state: str
    parent: int
    start_ticks: int


def stat_of(pid: int) -> Stat | None:
    """None when it has ended."""
    try:
        fields = stat_fields(PROC / str(pid))
    except OSError:
        return None
    return Stat(fields[0].decode(), int(fields[1]), int(fields[19]))


def state_of(pid: int, start_ticks: int) -> str | None:
    """The kernel's letter for what the very process does; None when it has ended."""
    stat = stat_of(pid)
    if stat is None or stat.start_ticks != start_ticks or stat.state in ENDED:
        return None
    return stat.state


def is_running(pid: int, start_ticks: int) -> bool:
    """Whether the very process is still there, and no zombie."""
    return state_of(pid, start_ticks) is not None


SPARE_FILES: Final = 96
"""Descriptors of a monitor besides the pages: libraries, pipes of py-spy, files of a look."""


def room_for_pages(wanted: int) -> int:
    """How many pages may be held open, a descriptor each. Asks for more where that is allowed: the
    soft limit (ulimit -n) is often lower than what the system grants."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - SPARE_FILES))


def ranks_here(pid: int, hello: Hello, most: int) -> dict[int, tuple[int, OpenPage]]:
    """The target's job on this host: pid and open page by rank, the target's own among them, and
    no more of them than `most`.

    Looks at the launcher's other children, and only where ranks are missing among these at all
    processes of the user: some start their ranks from several terminals.
    """
    expected = min(local_ranks(pid, hello), most)
    found: dict[int, tuple[int, OpenPage]] = {}
    _add_pages(found, _children_of_parent(pid), pid, hello, most)
    if len(found) < expected:
        _add_pages(found, _processes_of(hello.uid), pid, hello, most)
    return found


def local_ranks(pid: int, hello: Hello) -> int:
    """Ranks that the launcher started here, where it says so; else all that there are, which may
    be on other hosts too."""
    environ = environ_of(pid)
    ranks = environ.get("LOCAL_WORLD_SIZE", "")
    if ranks.isdecimal():
        return int(ranks)
    world = hello.world_size or 1
    if environ.get("SLURM_STEP_NUM_TASKS") == str(world):  # each task is a rank and starts no other
        return _tasks_here(environ) or world
    return world


def _tasks_here(environ: Mapping[str, str]) -> int | None:
    """Of SLURM's step on this node: "8(x2),4" has eight on the first two and four on the third."""
    node = environ.get("SLURM_NODEID", "")
    if not node.isdecimal():
        return None
    nodes_before = int(node)
    for part in environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            return None
        nodes = int(match["nodes"] or 1)
        if nodes_before < nodes:
            return int(match["tasks"])
        nodes_before -= nodes
    return None


def job_of(pid: int) -> tuple[str, ...]:
    """What the ranks of a job have in common: where they meet, or else who started them."""
    environ = environ_of(pid)
    if "MASTER_PORT" in environ:
        names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
        return tuple(environ.get(name, "") for name in names)
    stat = stat_of(pid)
    return ("child of", str(stat.parent if stat else 0))


def _add_pages(
    found: dict[int, tuple[int, OpenPage]],
    pids: Iterable[int],
    target: int,
    hello: Hello,
    most: int,
) -> None:
    job = job_of(target)
    for pid in sorted(pids, key=lambda one: one != target):  # it is never the one too many
        if len(found) >= most:
            break
        try:
            pages = pages_of(pid)
        except OSError:
            continue  # it has ended, or is another user's
        for opened in pages:
            rank = opened.hello.rank
            belongs = (
                rank is not None
                and opened.hello.world_size == hello.world_size
                and is_own(opened.hello, pid)
                and is_running(pid, opened.hello.start_ticks)
                and (pid == target or (rank != hello.rank and job_of(pid) == job))
            )
            if rank is None or not belongs or rank in found:
                opened.close()
            else:
                found[rank] = pid, opened


def _children_of_parent(pid: int) -> list[int]:
    stat = stat_of(pid)
    if stat is None:
        return []
    children: list[int] = []
    try:
        for thread in (PROC / str(stat.parent) / "task").iterdir():
            children += map(int, (thread / "children").read_text().split())
    except OSError:
        pass  # the launcher has ended, or the kernel keeps no such list
    return sorted({pid, *children})


def _processes_of(uid: int) -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if _is_of(entry, uid)]


def _is_of(entry: Path, uid: int) -> bool:
    try:
        return entry.name.isdecimal() and os.stat(entry).st_uid == uid
    except OSError:
        return False
