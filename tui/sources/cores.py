"""How many cores and how much memory a process may use: affinity and cgroup limits."""

import os
from dataclasses import dataclass
from pathlib import Path

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
    told = {name: int(value) for name, _, value in (line.partition(" ") for line in lines)}
    throttled_ns = told.get("throttled_time", told.get("throttled_usec", 0) * 1000)
    return QuotaUse(throttled_ns, told.get("nr_periods", 0), told.get("nr_throttled", 0))


def memory_of(
    pid: int, machine: MemoryLimit, root: Path = CGROUP, proc: Path = Path("/proc")
) -> MemoryLimit:
    """What a process can have of the machine's memory: its cgroup's limit where that is less."""
    limit = machine
    for folder in _folders(pid, root, proc):
        most = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
        if most is not None and used is not None and most < limit.total_bytes:
            limit = MemoryLimit(most, min(limit.available_bytes, max(0, most - used)))
    return limit


def _folders(pid: int, root: Path, proc: Path) -> list[Path]:
    """The cgroup folders that govern a process, innermost first (v2, and v1's cpu and memory)."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
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
    asked = ((_quota(folder), folder) for folder in _folders(pid, root, proc))
    return [(quota, folder) for quota, folder in asked if quota is not None]


def _quota(folder: Path) -> float | None:
    try:
        most, period = (folder / "cpu.max").read_text().split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError):
        pass
    most_us = _number(folder / "cpu.cfs_quota_us")
    period_us = _number(folder / "cpu.cfs_period_us")
    return most_us / period_us if most_us and most_us > 0 and period_us else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None  # no such file, or "max"
