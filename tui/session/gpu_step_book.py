"""The steps on the GPU's own clock, and what its allocator holds."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from operator import attrgetter
from statistics import median
from typing import Final

from probe.wire.messages import Batch, GpuClock, GpuMemory, GpuStep
from tui.snapshot import GpuPhases, Phase

HELD_ROWS: Final = 8192
SHOWN_ROWS: Final = 200
"""`Snapshot.recent_gpu`, as of the steps on the host's clock."""
HELD_MEMORY: Final = 3600
"""An hour, one reading a second."""

_PHASES: Final = {
    "data": attrgetter("data_ns"),
    "forward": attrgetter("forward_ns"),
    "backward": attrgetter("backward_ns"),
    "optimizer": attrgetter("optimizer_ns"),
    "other": attrgetter("other_ns"),
    "evaluation": attrgetter("evaluation_ns"),
    "checkpoint": attrgetter("checkpoint_ns"),
    "compile": attrgetter("compile_ns"),
    "loader start-up": attrgetter("startup_ns"),
}


class GpuStepBook:
    """Rows in time order, each once: a reconnection sends the last minutes again."""

    def __init__(self) -> None:
        self._rows: deque[GpuStep] = deque(maxlen=HELD_ROWS)
        self._recent: tuple[GpuStep, ...] = ()
        self._memory: deque[GpuMemory] = deque(maxlen=HELD_MEMORY)
        self._clocks: dict[int, GpuClock] = {}

    def delivered(self, batch: Batch) -> None:
        """Take what a batch holds of them."""
        for row in batch.gpu_steps:
            if row.count >= 1 and (not self._rows or row.start_ns >= self._rows[-1].end_ns):
                self._rows.append(row)
        if batch.gpu_steps:
            newest_first = tuple(islice(reversed(self._rows), SHOWN_ROWS))
            self._recent = newest_first[::-1]
        for reading in batch.gpu_memory:
            if not self._memory or reading.t_ns > self._memory[-1].t_ns:
                self._memory.append(reading)
        for clock in batch.gpu_clocks:
            self._clocks[clock.device] = clock

    @property
    def recent(self) -> tuple[GpuStep, ...]:
        """The newest rows, oldest first."""
        return self._recent

    @property
    def memory(self) -> tuple[GpuMemory, ...]:
        """The allocator's readings, oldest first."""
        return tuple(self._memory)

    @property
    def clocked(self) -> bool:
        """The probe reads the GPU's clock, whether or not a step was told by now."""
        return bool(self._clocks)

    @property
    def cost_ns_a_step(self) -> float | None:
        """What the device marks cost a step on average; None while nothing is measured."""
        clocks = self._clocks.values()
        return sum(clock.cost_ns / clock.every for clock in clocks) if clocks else None

    def between(self, start_ns: int, end_ns: int) -> tuple[GpuStep, ...]:
        """Rows that began and ended on the host within these moments, oldest first."""
        rows = list(self._rows)
        first = bisect_left(rows, start_ns, key=_start)
        return tuple(row for row in rows[first:] if row.end_ns <= end_ns)

    def phases(self, rows: Sequence[GpuStep]) -> GpuPhases | None:
        """The rows in numbers; None without any."""
        wall_ns = sum(row.wall_ns for row in rows)
        if wall_ns <= 0:
            return None
        steps = sum(row.count for row in rows)
        sums = {name: sum(map(ns_of, rows)) for name, ns_of in _PHASES.items()}
        for row in rows:
            for name, ns in row.phases.items():
                sums[name] = sums.get(name, 0) + ns
        clock = self._clocks.get(rows[-1].device)
        return GpuPhases(
            steps=steps,
            phases=tuple(
                Phase(name, ns / steps / 1e6, ns / wall_ns) for name, ns in sums.items() if ns
            ),
            exposed_ms=sum(row.exposed_ns for row in rows) / steps / 1e6,
            hidden_ms=sum(row.hidden_ns for row in rows) / steps / 1e6,
            lag_ms=(
                _median_ms(rows, lambda row: row.lag_data_ns),
                _median_ms(rows, lambda row: row.lag_forward_ns),
                _median_ms(rows, lambda row: row.lag_backward_ns),
                _median_ms(rows, lambda row: row.lag_optimizer_ns),
            ),
            uncertain_ms=_median_ms(rows, lambda row: row.uncertain_ns),
            every=clock.every if clock else 1,
            cost_us=clock.cost_ns / 1e3 if clock else None,
        )


def _start(row: GpuStep) -> int:
    return row.start_ns


def _median_ms(rows: Sequence[GpuStep], of: Callable[[GpuStep], int | None]) -> float | None:
    known = [value for row in rows if (value := of(row)) is not None]
    return median(known) / 1e6 if known else None
