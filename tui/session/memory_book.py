"""Host memory over the run: the training process, and its workers apart."""

from collections.abc import Sequence
from typing import Final

from tui.observations import ProcessesSeen, ProcessUse
from tui.session.memory_levels import MemoryLevels
from tui.session.memory_series import MemorySeries
from tui.snapshot import MemoryView
from tui.verdict.memory_trend import MemoryTrend
from tui.verdict.window import MemoryPoint

HELD_POINTS: Final = 3600
"""The newest half an hour at one point a second, and all before it further apart; some 300 kB."""
SPACING_NS: Final = 950_000_000
"""At least about a second between points: sources that look once a second jitter."""


class MemoryBook:
    """Series of resident memory."""

    def __init__(self) -> None:
        self.main = MemorySeries(HELD_POINTS, SPACING_NS)
        self.workers = MemorySeries(HELD_POINTS, SPACING_NS)
        self.levels = MemoryLevels()
        self._pss: dict[int, int] = {}
        """Last known proportional set size of each worker, without pages of files."""
        self._pss_first: dict[int, int] = {}
        """The first that was known."""
        self._pss_part: float | None = None
        """Of the workers' resident sizes, when it was last known of all of them."""
        self._rss_bytes: int | None = None
        self._held_bytes: int | None = None
        """Without pages of files."""
        self._workers_bytes: int | None = None
        self._total_bytes: int | None = None
        self._available_bytes: int | None = None

    def resident(self, t_ns: int, step: int, rss_bytes: int, file_bytes: int | None) -> None:
        """The training process was looked at, by the probe or from outside. Pages of files are let
        go when memory is short: they neither grow nor fill it."""
        self._rss_bytes = rss_bytes
        self._held_bytes = rss_bytes - (file_bytes or 0)
        self.main.add(MemoryPoint(step, t_ns, self._held_bytes))
        self.levels.process(t_ns, self._held_bytes)

    def processes(self, seen: ProcessesSeen, step: int) -> None:
        """All its processes were looked at."""
        self._total_bytes = seen.memory_total_bytes
        self._available_bytes = seen.memory_available_bytes
        for process in seen.processes:
            if process.role == "main":
                self.resident(seen.t_ns, step, process.rss_bytes, process.file_bytes)
        workers = [process for process in seen.processes if process.role == "worker"]
        self._count_workers(seen.t_ns, step, workers)

    def _count_workers(self, t_ns: int, step: int, workers: list[ProcessUse]) -> None:
        """Proportional set sizes once every worker has one: resident sizes count shared pages
        many times, and a series that mixes the two shows jumps that never happened."""
        if not workers:
            self._pss, self._pss_first, self._workers_bytes = {}, {}, None
            return
        known = {
            w.pid: w.pss_bytes - (w.file_bytes or 0) for w in workers if w.pss_bytes is not None
        }
        read_anew = any(self._pss.get(pid) != pss for pid, pss in known.items())
        pids = {worker.pid for worker in workers}
        resident = sum(worker.rss_bytes for worker in workers)
        self._pss = {pid: pss for pid, pss in self._pss.items() if pid in pids} | known
        self._pss_first = {pid: self._pss_first.get(pid, pss) for pid, pss in self._pss.items()}
        if self._pss.keys() != pids:
            part = self._pss_part  # new workers share as much as those before them
            self._workers_bytes = None if part is None else round(part * resident)
            return
        self._workers_bytes = sum(self._pss.values())
        self._pss_part = self._workers_bytes / resident if resident else None
        if read_anew:  # sources repeat the last one between readings, which are far apart
            self.workers.add(MemoryPoint(step, t_ns, self._workers_bytes))
            self.levels.workers(t_ns, self._workers_bytes)

    @property
    def limit_bytes(self) -> int | None:
        """What the process could still grow to."""
        if self._held_bytes is None or self._available_bytes is None:
            return None
        return self._held_bytes + self._available_bytes

    @property
    def workers_grown(self) -> tuple[int, ...]:
        """What each worker has grown by since it was first looked at, bytes."""
        return tuple(pss - self._pss_first[pid] for pid, pss in self._pss.items())

    def view(self, growing: bool, trends: Sequence[MemoryTrend]) -> MemoryView:
        """For the faces. Whether it is growing, and how fast, is the verdict's word."""
        slopes = [
            100.0 * one.slope.middle
            for one in trends
            if one.whose == "process" and one.unit == "steps"
        ]
        return MemoryView(
            host=self.main.all(),
            host_rss_bytes=self._rss_bytes,
            workers_bytes=self._workers_bytes,
            total_bytes=self._total_bytes,
            available_bytes=self._available_bytes,
            slope_bytes_per_100_steps=slopes[0] if slopes else None,
            growing=growing,
        )
