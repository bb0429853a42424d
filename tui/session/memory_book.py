"""Host memory over the run: the training process, and its workers apart."""

from collections import deque
from itertools import pairwise
from statistics import median
from typing import Final

from tui.observations import ProcessesSeen, ProcessUse
from tui.snapshot import MemoryView
from tui.verdict.window import MemoryPoint

HELD_POINTS: Final = 3600
"""An hour at one point a second; some 300 kB."""
SPACING_NS: Final = 950_000_000
"""At least about a second between points: sources that look once a second jitter."""
BLOCKS: Final = 12
POINTS_A_BLOCK: Final = 2
"""The trend is taken over the minima of 12 blocks (diagnosis.md 4): peaks inside a step drop out,
and it takes 24 s before there is one."""
RISING_BLOCKS: Final = 0.8
LEAST_RISE_BYTES: Final = 16 * 1024 * 1024
"""Below this it is the allocator's noise (diagnosis.md 4)."""


class MemoryBook:
    """Series of resident memory."""

    def __init__(self) -> None:
        self.main: deque[MemoryPoint] = deque(maxlen=HELD_POINTS)
        self.workers: deque[MemoryPoint] = deque(maxlen=HELD_POINTS)
        self._pss: dict[int, int] = {}
        """Last known proportional set size of each worker."""
        self._rss_bytes: int | None = None
        self._workers_bytes: int | None = None
        self._total_bytes: int | None = None
        self._available_bytes: int | None = None

    def resident(self, t_ns: int, step: int, rss_bytes: int) -> None:
        """The training process was looked at, by the probe or from outside."""
        self._rss_bytes = rss_bytes
        _append(self.main, MemoryPoint(step, t_ns, rss_bytes))

    def processes(self, seen: ProcessesSeen, step: int) -> None:
        """All its processes were looked at."""
        self._total_bytes = seen.memory_total_bytes
        self._available_bytes = seen.memory_available_bytes
        for process in seen.processes:
            if process.role == "main":
                self.resident(seen.t_ns, step, process.rss_bytes)
        workers = [process for process in seen.processes if process.role == "worker"]
        self._count_workers(seen.t_ns, step, workers)

    def _count_workers(self, t_ns: int, step: int, workers: list[ProcessUse]) -> None:
        """Proportional set sizes once every worker has one: resident sizes count shared pages
        many times, and a series that mixes the two shows jumps that never happened."""
        if not workers:
            self._pss, self._workers_bytes = {}, None
            return
        known = {w.pid: w.pss_bytes for w in workers if w.pss_bytes is not None}
        read_anew = any(self._pss.get(pid) != pss for pid, pss in known.items())
        pids = {worker.pid for worker in workers}
        self._pss = {pid: pss for pid, pss in self._pss.items() if pid in pids} | known
        if self._pss.keys() != pids:
            self._workers_bytes = sum(worker.rss_bytes for worker in workers)
            return
        self._workers_bytes = sum(self._pss.values())
        if read_anew:  # sources repeat the last one between readings, which are far apart
            _append(self.workers, MemoryPoint(step, t_ns, self._workers_bytes))

    @property
    def limit_bytes(self) -> int | None:
        """What the process could still grow to."""
        if self._rss_bytes is None or self._available_bytes is None:
            return None
        return self._rss_bytes + self._available_bytes

    def view(self, growing: bool) -> MemoryView:
        """For the faces. `growing` is the verdict's word, not this series'."""
        return MemoryView(
            host=tuple(self.main),
            host_rss_bytes=self._rss_bytes,
            workers_bytes=self._workers_bytes,
            total_bytes=self._total_bytes,
            available_bytes=self._available_bytes,
            slope_bytes_per_100_steps=slope_bytes_per_100_steps(tuple(self.main)),
            growing=growing,
        )


def _append(series: deque[MemoryPoint], point: MemoryPoint) -> None:
    if not series or point.t_ns - series[-1].t_ns >= SPACING_NS:
        series.append(point)


def slope_bytes_per_100_steps(points: tuple[MemoryPoint, ...]) -> float | None:
    """The trend of a series (Theil-Sen on block minima); None while short or not a trend."""
    size = len(points) // BLOCKS
    if size < POINTS_A_BLOCK:
        return None
    kept = points[-size * BLOCKS :]
    minima = [
        min(kept[i : i + size], key=lambda point: point.bytes) for i in range(0, len(kept), size)
    ]
    pairs = list(pairwise(minima))
    rising = sum(after.bytes > before.bytes for before, after in pairs) / len(pairs)
    if rising < RISING_BLOCKS or minima[-1].bytes - minima[0].bytes < LEAST_RISE_BYTES:
        return None
    slopes = [
        (after.bytes - before.bytes) / (after.step - before.step)
        for i, before in enumerate(minima)
        for after in minima[i + 1 :]
        if after.step > before.step
    ]
    return 100.0 * median(slopes) if slopes else None
