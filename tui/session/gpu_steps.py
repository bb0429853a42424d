"""The steps on the GPU's own clock, and what its allocator holds."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from statistics import median
from typing import Final

from ..model.observations import ActivitySeen, GpusSeen
from ..model.snapshot import GpuPhases, PhaseStats
from ..steps import Batch, GpuClock, GpuMemory, GpuStep
from ..timeseries.series import Series
from ..timeseries.writer import Growing

# What each GPU did and how it was, over the last hour.

NAMES: Final = {"gpm": "gpm", "samples": "nvml", "utilization": "nvml"}
"""What people call the sources of `Activity`."""
USE_NS: Final = 1_000_000_000
"""NVML's slow figures are read once a second."""


@dataclass(frozen=True, slots=True)
class _Quantity:
    """One field of a reading, as a series."""

    field: str
    name: str
    title: str
    unit: str


DONE: Final = (
    _Quantity("sm", "sm", "SM active", "%"),
    _Quantity("busy", "busy", "GPU busy", "%"),
    _Quantity("occupancy", "occupancy", "occupancy", "%"),
    _Quantity("tensor", "tensor", "tensor cores", "%"),
    _Quantity("fp32", "fp32", "FP32", "%"),
    _Quantity("dram", "dram", "DRAM bandwidth", "%"),
    _Quantity("pcie_rx_mb_s", "pcie_rx", "PCIe to the GPU", "MB/s"),
    _Quantity("pcie_tx_mb_s", "pcie_tx", "PCIe from the GPU", "MB/s"),
    _Quantity("nvlink_rx_mb_s", "nvlink_rx", "NVLink received", "MB/s"),
    _Quantity("nvlink_tx_mb_s", "nvlink_tx", "NVLink sent", "MB/s"),
)
BEING: Final = (
    _Quantity("power_w", "power", "power", "W"),
    _Quantity("sm_clock_mhz", "sm_clock", "SM clock", "MHz"),
    _Quantity("memory_clock_mhz", "memory_clock", "memory clock", "MHz"),
    _Quantity("temperature_c", "temperature", "temperature", "°C"),
    _Quantity("memory_used_bytes", "memory_used", "memory used", "bytes"),
)
READ: Final = {one.field: attrgetter(one.field) for one in (*DONE, *BEING)}
ORDER: Final = {one.name: at for at, one in enumerate((*DONE, *BEING))}


class GpuSeries:
    """A series for every figure of every GPU that was ever read."""

    def __init__(self) -> None:
        self._growing: dict[tuple[int, str, str], Growing] = {}
        """By device, name and source: what another source says goes on elsewhere."""

    def did(self, seen: ActivitySeen, interval_ns: int) -> None:
        """A reading of what they did; `interval_ns`: how far apart the readings are."""
        for gpu in seen.gpus:
            source = NAMES.get(gpu.source, gpu.source)
            for one in DONE:
                if (value := READ[one.field](gpu)) is not None:
                    growing = self._of(one, gpu.index, source, interval_ns)
                    growing.add(seen.t_ns, value, gpu.interval_ns)

    def were(self, seen: GpusSeen) -> None:
        """A reading of how they are."""
        for gpu in seen.gpus:
            for one in BEING:
                if (value := READ[one.field](gpu)) is not None:
                    self._of(one, gpu.index, "nvml", USE_NS).add(seen.t_ns, float(value))

    def all(self) -> tuple[Series, ...]:
        """By device, in the order of the tables above; of two sources that of the newer sample."""
        newest: dict[tuple[int, str], Series] = {}
        for (device, name, _), growing in self._growing.items():
            series, other = growing.series(), newest.get((device, name))
            if other is None or series.end_ns > other.end_ns:
                newest[device, name] = series
        return tuple(newest[key] for key in sorted(newest, key=_place))

    def _of(self, one: _Quantity, device: int, source: str, interval_ns: int) -> Growing:
        key = (device, one.name, source)
        if key not in self._growing:
            self._growing[key] = Growing(one.name, one.title, one.unit, source, device, interval_ns)
        growing = self._growing[key]
        growing.interval_ns = interval_ns
        return growing


def _place(key: tuple[int, str]) -> tuple[int, int]:
    device, name = key
    return device, ORDER[name]


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


class GpuStepStore:
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
        for clock in batch.gpu_clocks:
            self._clocks[clock.device] = clock

    def allocator(self, reading: GpuMemory) -> None:
        """An allocator was read."""
        if not self._memory or reading.t_ns > self._memory[-1].t_ns:
            self._memory.append(reading)

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
        """The probe reads the GPU's clock, whether or not a step has come by now."""
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
                PhaseStats(name, ns / steps / 1e6, ns / wall_ns) for name, ns in sums.items() if ns
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
