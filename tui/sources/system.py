"""How many cores and how much memory a process may use: affinity and cgroup limits."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from ..discovery.targets import stat_fields

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Bytes."""

    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """What a CPU quota did since its group was made."""

    throttled_ns: int
    """Time in which it held the group back, summed over the cores."""
    periods: int
    cut_periods: int
    """Periods in which it did."""


def cores_of(pid: int, root: Path = CGROUP, proc: Path = Path("/proc")) -> float:
    """Cores that a process may use: the smaller of its affinity and its cgroup's quota."""
    affinity = float(len(os.sched_getaffinity(pid)))
    return min([affinity, *(quota for quota, _ in _quotas(pid, root, proc))])


def quota_use_of(pid: int, root: Path = CGROUP, proc: Path = Path("/proc")) -> QuotaUse | None:
    """What the tightest of a process's CPU quotas did; None without a quota."""
    quotas = _quotas(pid, root, proc)
    if not quotas:
        return None
    _, folder = min(quotas)
    try:
        lines = (folder / "cpu.stat").read_text().splitlines()
    except OSError:
        return None
    counters = {name: int(value) for name, _, value in (line.partition(" ") for line in lines)}
    throttled_ns = counters.get("throttled_time", counters.get("throttled_usec", 0) * 1000)
    return QuotaUse(throttled_ns, counters.get("nr_periods", 0), counters.get("nr_throttled", 0))


def memory_of(
    pid: int, machine: MemoryLimit, root: Path = CGROUP, proc: Path = Path("/proc")
) -> MemoryLimit:
    """What a process can have of the machine's memory: its cgroup's limit where that is less. Pages
    of files that nobody has used lately are given back before it is reached."""
    limit = machine
    for folder in cgroup_folders(pid, root, proc):
        most = number_in(folder / "memory.max") or number_in(folder / "memory.limit_in_bytes")
        used = number_in(folder / "memory.current") or number_in(folder / "memory.usage_in_bytes")
        if most is not None and used is not None and most < limit.total_bytes:
            available = most - max(0, used - _given_back(folder))
            limit = MemoryLimit(most, min(limit.available_bytes, max(0, available)))
    return limit


def _given_back(folder: Path) -> int:
    """Bytes of a cgroup's memory that the kernel gives back on demand, as `docker stats` and
    Kubernetes' working set leave out: inactive pages of files, of all groups below it too."""
    stat = folder / "memory.stat"
    return counter_in(stat, "total_inactive_file") or counter_in(stat, "inactive_file")


def cgroup_folders(pid: int, root: Path, proc: Path) -> list[Path]:
    """The cgroup folders that govern a process, innermost first (v2, and v1's cpu and memory)."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            top = root
        elif {"cpu", "memory"} & set(controllers.split(",")):
            top = root / controllers
        else:
            continue
        folder = top / path.lstrip("/")
        while True:
            folders.append(folder)
            if folder == top or top not in folder.parents:
                break
            folder = folder.parent
    return folders


def _quotas(pid: int, root: Path, proc: Path) -> list[tuple[float, Path]]:
    """Cores that each quota allows, and the folder that sets it, innermost first."""
    asked = ((_quota(folder), folder) for folder in cgroup_folders(pid, root, proc))
    return [(quota, folder) for quota, folder in asked if quota is not None]


def _quota(folder: Path) -> float | None:
    try:
        most, period = (folder / "cpu.max").read_text().split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError):
        pass
    most_us = number_in(folder / "cpu.cfs_quota_us")
    period_us = number_in(folder / "cpu.cfs_period_us")
    return most_us / period_us if most_us and most_us > 0 and period_us else None


def counter_in(path: Path, name: str) -> int:
    """The number behind a name in a cgroup's file; 0 where there is none."""
    try:
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        pass  # the group ended with its last process, or this kernel does not count
    return 0


def number_in(path: Path) -> int | None:
    """A file that holds one number; None where it does not."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None  # no such file, or "max"


# What a process has started, and what that has.

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
            return int(stat_fields(self._proc / str(pid))[PARENT])
        except OSError:
            return None  # it has just ended


def _process(pid: int, before: psutil.Process | None) -> psutil.Process | None:
    """The pid of one that has ended may be another's by now."""
    if before is not None and before.is_running():
        return before
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


class Pace:
    """When something may be read again, by the CPU time that it took."""

    def __init__(self, least_ns: int, share: float) -> None:
        """`least_ns` between two readings at least; `share` of one core at most."""
        self._least_ns = least_ns
        self._share = share
        self._due_ns: int | None = None

    def is_due(self, now_ns: int) -> bool:
        """Whether it may be read now."""
        return self._due_ns is None or now_ns >= self._due_ns

    def read(self, now_ns: int, took_ns: int) -> None:
        """It was read just now, which took so much CPU time."""
        self._due_ns = now_ns + max(self._least_ns, round(took_ns / self._share))


class ThreadTimes(NamedTuple):
    """Of a thread since its start, ns; None: not reported."""

    ran_ns: int | None = None
    delay_ns: int | None = None
    """It was ready to run and did not."""


UNKNOWN: Final = ThreadTimes()


def thread_times(pid: int, proc: Path = Path("/proc"), thread: int | None = None) -> ThreadTimes:
    """Of its main thread or another one, by schedstat. A kernel that does not count this says
    "0 0 0", though every thread has run once."""
    try:
        text = (proc / str(pid) / "task" / str(thread or pid) / "schedstat").read_text()
        ran_ns, delay_ns, slices = map(int, text.split())
    except (OSError, ValueError):
        return UNKNOWN
    return ThreadTimes(ran_ns, delay_ns) if slices else UNKNOWN


class KernelUse(NamedTuple):
    """Of a thread since its start; None: not reported."""

    in_kernel_s: float | None = None
    page_faults: int | None = None
    """Pages that it touched and that were not there, but on no disk either (minor faults)."""


TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
PAGE_FAULTS: Final = 7
IN_KERNEL: Final = 12
"""Of the fields behind the name in /proc/PID/stat: `minflt`, and `stime` in ticks of the clock."""


NO_USE: Final = KernelUse()


def kernel_use(pid: int, proc: Path = Path("/proc")) -> KernelUse:
    """Of its main thread."""
    try:
        fields = stat_fields(proc / str(pid) / "task" / str(pid))
        return KernelUse(int(fields[IN_KERNEL]) * TICK_S, int(fields[PAGE_FAULTS]))
    except (OSError, ValueError, IndexError):
        return NO_USE


def cores_busy_percent(pid: int) -> float | None:
    """How busy the cores are that a process may use, 0 to 100, since the last call from this
    thread. A machine of many cores is not full when the one that the process has is."""
    every = psutil.cpu_percent(None, percpu=True)
    mine = [every[core] for core in os.sched_getaffinity(pid) if core < len(every)]
    return sum(mine) / len(mine) if mine else None


def others_percent(pid: int, busy: float | None, own: list[float | None]) -> float | None:
    """What others use of a process's cores, of one core, when they are `busy` percent and the
    processes of its own tree use `own` percent of a core each."""
    if busy is None or None in own:
        return None
    used = sum(percent for percent in own if percent is not None)
    return max(0.0, busy * len(os.sched_getaffinity(pid)) - used)


class QuotaWatch:
    """How much of the time a process's CPU quota holds it back."""

    def __init__(self, pid: int, root: Path = CGROUP, proc: Path = Path("/proc")) -> None:
        self._where = (pid, root, proc)
        self._before: tuple[int, QuotaUse] | None = None

    def percent(self, now_ns: int) -> float | None:
        """Since the last call; None without a quota, and at the first call.

        The kernel adds up over the cores on which a group is stopped, so the sum alone may say
        more than the time that passed; the part of the periods that were cut short bounds it.
        """
        used = quota_use_of(*self._where)
        before, self._before = self._before, None if used is None else (now_ns, used)
        if used is None or before is None or now_ns <= before[0]:
            return None
        stopped = (used.throttled_ns - before[1].throttled_ns) / (now_ns - before[0])
        periods = used.periods - before[1].periods
        cut = (used.cut_periods - before[1].cut_periods) / periods if periods > 0 else 0.0
        return 100 * max(0.0, min(1.0, stopped, cut))
