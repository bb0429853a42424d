"""Host memory over the run: the training process, and its workers apart."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from ..model.observations import GpusSeen, ProcessesSeen, ProcessUse
from ..model.snapshot import MemoryView
from ..steps import GpuMemory
from ..timeseries.series import Series
from ..timeseries.writer import Growing
from ..verdict.memory.trends import MemoryTrend
from ..verdict.window import MemoryPoint


class MemorySeries:
    """Points at least `spacing_ns` apart, oldest first: half of the room holds the newest as they
    came, half the lowest of each of the equal intervals before them."""

    def __init__(self, most: int, spacing_ns: int) -> None:
        self._half = most // 2
        self._spacing_ns = spacing_ns
        self._newest: deque[MemoryPoint] = deque()
        self._older: list[MemoryPoint] = []
        self._interval_ns = 2 * spacing_ns
        self._interval_began_ns: int | None = None

    def add(self, point: MemoryPoint) -> None:
        """Take a point; one too soon after the last is not kept."""
        newest = self._newest
        if newest and point.t_ns - newest[-1].t_ns < self._spacing_ns:
            return
        newest.append(point)
        if len(newest) > self._half:
            self._age(newest.popleft())

    def all(self) -> tuple[MemoryPoint, ...]:
        """What is held."""
        return (*self._older, *self._newest)

    def _age(self, point: MemoryPoint) -> None:
        began_ns = self._interval_began_ns
        if began_ns is not None and point.t_ns - began_ns < self._interval_ns:
            self._older[-1] = _lower(self._older[-1], point)
            return
        self._interval_began_ns = point.t_ns
        self._older.append(point)
        if len(self._older) > self._half:
            # The last one has only begun: it stays by itself.
            pairs = zip(self._older[:-1:2], self._older[1:-1:2], strict=False)
            self._older = [*(_lower(one, other) for one, other in pairs), self._older[-1]]
            self._interval_ns *= 2


def _lower(one: MemoryPoint, other: MemoryPoint) -> MemoryPoint:
    return min(one, other, key=lambda point: point.bytes)


# What memory held over the last hour, as the charts draw it: as it was, not its floors alone.

READ_NS: Final = 1_000_000_000
"""The allocator and the process are read once a second…"""
SHARED_NS: Final = 10_000_000_000
"""…what workers share with each other every ten."""
LONGEST_NS: Final = 60_000_000_000
"""The allocator is read between steps: a reading after a long one is of it. After a longer
pause nothing is known of it."""
HELD: Final = 3_600


class MemoryLevels:
    """One series for each memory of which anything is known."""

    def __init__(self) -> None:
        self._allocators: dict[int, tuple[Growing, Growing]] = {}
        """Allocated and reserved, by torch's number of the device."""
        self._read_ns: dict[int, int] = {}
        """When each was read last."""
        self._others: dict[int, Growing] = {}
        """By NVML's."""
        self._process: Growing | None = None
        self._workers: Growing | None = None

    def allocator(self, reading: GpuMemory) -> None:
        """A device's allocator was read."""
        device = reading.device
        if device not in self._allocators:
            self._allocators[device] = (
                _growing("allocated", "GPU allocated", "hook", device, READ_NS),
                _growing("reserved", "GPU reserved", "hook", device, READ_NS),
            )
        held = (reading.allocated, reading.reserved)
        since_ns = reading.t_ns - self._read_ns.get(device, reading.t_ns - READ_NS)
        if since_ns <= 0:
            return  # sent again after a reconnection
        self._read_ns[device] = reading.t_ns
        for growing, value in zip(self._allocators[device], held, strict=True):
            growing.interval_ns = max(READ_NS, round(since_ns / READ_NS) * READ_NS)
            growing.add(reading.t_ns, float(value), min(since_ns, LONGEST_NS))

    def gpus(self, seen: GpusSeen) -> None:
        """The devices were read: what others hold on each, once somebody did."""
        for gpu in seen.gpus:
            held = sum(other.memory_bytes or 0 for other in gpu.others)
            if held and gpu.index not in self._others:
                self._others[gpu.index] = _growing(
                    "others", "other processes", "nvml", gpu.index, READ_NS
                )
            if gpu.index in self._others:
                self._others[gpu.index].add(seen.t_ns, float(held))

    def process(self, t_ns: int, held_bytes: int) -> None:
        """The training process was read."""
        if self._process is None:
            self._process = _growing("host", "process", "proc", None, READ_NS)
        self._process.add(t_ns, float(held_bytes))

    def workers(self, t_ns: int, held_bytes: int) -> None:
        """The workers' proportional sizes were read anew."""
        if self._workers is None:
            self._workers = _growing("workers", "workers, PSS", "proc", None, SHARED_NS)
        self._workers.add(t_ns, float(held_bytes))

    def series(self) -> tuple[Series, ...]:
        """What is held now."""
        pairs = self._allocators.values()
        known = [growing for pair in pairs for growing in pair] + [*self._others.values()]
        known += [one for one in (self._process, self._workers) if one is not None]
        return tuple(one.series() for one in known)


def _growing(name: str, title: str, source: str, device: int | None, read_ns: int) -> Growing:
    return Growing(name, title, "bytes", source, device, read_ns, as_sampled=HELD)


HELD_POINTS: Final = 3600
"""The newest half an hour at one point a second, and all before it further apart; some 300 kB."""
SPACING_NS: Final = 950_000_000
"""At least about a second between points: sources that look once a second jitter."""


class MemoryStore:
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
        """The training process was read, by the probe or from outside. Pages of files are let
        go when memory is short: they neither grow nor fill it."""
        self._rss_bytes = rss_bytes
        self._held_bytes = rss_bytes - (file_bytes or 0)
        self.main.add(MemoryPoint(step, t_ns, self._held_bytes))
        self.levels.process(t_ns, self._held_bytes)

    def remember(self, main: Iterable[MemoryPoint], workers: Iterable[MemoryPoint]) -> None:
        """What was read before a recording began."""
        for point in main:
            self.main.add(point)
            self.levels.process(point.t_ns, point.bytes)
        for point in workers:
            self.workers.add(point)
            self.levels.workers(point.t_ns, point.bytes)

    def processes(self, seen: ProcessesSeen, step: int) -> None:
        """All its processes were read."""
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
        """What each worker has grown by since it was first read, bytes."""
        return tuple(pss - self._pss_first[pid] for pid, pss in self._pss.items())

    def view(self, growing: bool, trends: Sequence[MemoryTrend]) -> MemoryView:
        """For the faces. The verdict decides whether it grows, and how fast."""
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
