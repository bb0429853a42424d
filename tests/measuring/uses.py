"""What a process uses, as the kernel reports it: memory, threads, descriptors, CPU time."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

TICKS_S: Final = os.sysconf("SC_CLK_TCK")
KIB: Final = 1024


@dataclass(frozen=True)
class Use:
    """Of one process, or of several together."""

    rss_bytes: int = 0
    pss_bytes: int = 0
    threads: int = 0
    descriptors: int = 0
    cpu_s: float = 0.0
    """User and system, since its start."""
    reaped_cpu_s: float = 0.0
    """Of its children that have ended and were waited for."""

    def plus(self, other: "Use") -> "Use":
        """Both together."""
        return Use(
            self.rss_bytes + other.rss_bytes,
            self.pss_bytes + other.pss_bytes,
            self.threads + other.threads,
            self.descriptors + other.descriptors,
            self.cpu_s + other.cpu_s,
            self.reaped_cpu_s + other.reaped_cpu_s,
        )


def use_of(pid: int) -> Use:
    """Of a process. Raises OSError where there is none any more."""
    folder = Path(f"/proc/{pid}")
    rollup = (folder / "smaps_rollup").read_text()
    own, reaped = _cpu_s((folder / "stat").read_text())
    return Use(
        _bytes_of("Rss", rollup),
        _bytes_of("Pss", rollup),
        len(os.listdir(folder / "task")),
        len(os.listdir(folder / "fd")),
        own,
        reaped,
    )


def use_below(pid: int) -> Use:
    """Of all that descend from a process, together. One that ends meanwhile is left out."""
    below = Use()
    for process in psutil.Process(pid).children(recursive=True):
        try:
            below = below.plus(use_of(process.pid))
        except OSError:
            continue
    return below


def thread_cpu_s(pid: int, thread: int) -> float:
    """User and system of one thread. Raises OSError where there is none any more."""
    return _cpu_s(Path(f"/proc/{pid}/task/{thread}/stat").read_text())[0]


def waited_for_core_s(pid: int) -> float:
    """How long the threads that it has now were ready to run and had no core, summed (schedstat; 0
    where the kernel does not count it). What a process is late by beyond this is its own doing."""
    waited_ns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            waited_ns += int((task / "schedstat").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return waited_ns / 1e9


def _cpu_s(stat: str) -> tuple[float, float]:
    """(its own, its reaped children's)."""
    user, system, below_user, below_system = map(int, stat.rsplit(")", 1)[1].split()[11:15])
    return (user + system) / TICKS_S, (below_user + below_system) / TICKS_S


def _bytes_of(name: str, rollup: str) -> int:
    """A line of smaps_rollup. One that has just ended has none."""
    for line in rollup.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * KIB
    raise ProcessLookupError(name)
