"""What a GPU is shown by beside its activity: which strips, in which order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tui.over_time.series import Series
from tui.widgets.charts.columns import Column

LEAST_LINK_MB_S: Final = 1.0
"""NVLink is worth a strip where something went over it."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One strip."""

    name: str
    """The series' (`Snapshot.series`)."""
    label: str
    short: str
    leaves: int
    """When rows are short the highest leaves first."""


SIGNALS: Final = (
    Signal("tensor", "tensor", "tensor", 0),
    Signal("dram", "DRAM", "DRAM", 1),
    Signal("occupancy", "occupancy", "occup.", 8),
    Signal("fp32", "FP32", "FP32", 9),
    Signal("pcie_rx", "PCIe in", "PCIe in", 2),
    Signal("pcie_tx", "PCIe out", "PCIe out", 6),
    Signal("nvlink_rx", "NVLink in", "NVL in", 7),
    Signal("nvlink_tx", "NVLink out", "NVL out", 10),
    Signal("power", "power", "power", 3),
    Signal("sm_clock", "SM clock", "clock", 4),
    Signal("memory_clock", "mem. clock", "mem clk", 12),
    Signal("temperature", "temp.", "temp.", 11),
    Signal("memory_used", "memory", "memory", 5),
)
NVLINK: Final = frozenset({"nvlink_rx", "nvlink_tx"})


def signals_of(
    found: Mapping[str, Series], columns: Mapping[str, Sequence[Column | None]]
) -> list[Signal]:
    """The strips of the series that there are."""
    peaks = [peak_of(columns[name]) for name in NVLINK if name in columns]
    linked = max(peaks, default=0.0) >= LEAST_LINK_MB_S
    there = [signal for signal in SIGNALS if signal.name in found]
    return [signal for signal in there if linked or signal.name not in NVLINK]


def most_wanted(signals: Sequence[Signal], most: int) -> list[Signal]:
    """At most so many of them, in their order."""
    leaving = sorted(signals, key=lambda signal: signal.leaves)[most:]
    return [signal for signal in signals if signal not in leaving]


def peak_of(columns: Sequence[Column | None]) -> float:
    """The highest of what was sampled; 0 of nothing."""
    return max((column.peak for column in columns if column is not None), default=0.0)
