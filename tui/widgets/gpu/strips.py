"""A strip: one quantity over time in a row or more, with its figures at the right end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Final

from ...model.observations import GpuUse
from ...timeseries.series import Series
from ...wording.numbers import count
from ..charts.columns import ChartColumn
from ..text import Row, Span, cell_len, clip

# The scale of a strip: what a full one means, and how its values are written.

HOTTEST_C: Final = 100.0
_GIB: Final = 1024.0**3
_FRACTIONS: Final = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class StripScale:
    """From 0 to `top`."""

    top: float
    """In the series' unit."""
    per: float
    """Of the series' unit in one of `unit`."""
    unit: str
    places: int

    def figure(self, value: float) -> str:
        """The value without its unit."""
        scaled = value / self.per
        return f"{scaled:,.{self.places}f}" if self.places else count(round(scaled))

    def figure_of_scale(self, value: float, cells: int) -> str:
        """The value with its unit, and with what a full strip means where there is room."""
        figure, top = self.figure(value), count(round(self.top / self.per))
        if self.unit == "%":
            return f"{figure} %"
        full = (f"{figure}/{top} {self.unit}", f"{figure}/{top}{self.unit}")
        return next((one for one in full if len(one) <= cells), f"{figure} {self.unit}")

    @property
    def words(self) -> str:
        """What a full strip means: "700 W", "10 GB/s"."""
        return f"{count(round(self.top / self.per))} {self.unit}"


def scale_of(series: Series, gpu: GpuUse | None, peak: float) -> StripScale:
    """Shares on 0 to 100; what has a limit against its limit; the others, whose highest is `peak`,
    on a round figure of their own."""
    if series.unit == "%":
        return StripScale(100.0, 1.0, "%", 0)
    if series.unit == "MB/s":
        top = round_up(peak)
        return (
            StripScale(top, 1000.0, "GB/s", 1) if top >= 1000 else StripScale(top, 1.0, "MB/s", 0)
        )
    if series.unit == "bytes":
        top = float(gpu.memory_total_bytes) if gpu else round_up(peak / _GIB) * _GIB
        return StripScale(top, _GIB, "GiB", 1)
    limits = {
        "power": gpu.power_limit_w if gpu else None,
        "sm_clock": gpu.max_sm_clock_mhz if gpu else None,
        "temperature": HOTTEST_C,
    }
    return StripScale(float(limits.get(series.name) or round_up(peak)), 1.0, series.unit, 0)


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50…: 5,900 -> 10,000."""
    if value <= 1:
        return 1.0
    decade = 10.0 ** int(log10(value))
    return next(part * decade for part in _FRACTIONS if part * decade >= value)


# What a GPU is shown by beside its activity: which strips, in which order.

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
    found: Mapping[str, Series], columns: Mapping[str, Sequence[ChartColumn | None]]
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


def peak_of(columns: Sequence[ChartColumn | None]) -> float:
    """The highest of what was sampled; 0 of nothing."""
    return max((column.peak for column in columns if column is not None), default=0.0)


NARROW: Final = 60
"""Below, labels are short and one figure must do."""
PEAK_FROM, MEAN_FROM = 90, 110


@dataclass(frozen=True, slots=True)
class Figures:
    """How a row of the picture is divided: label, columns of time, figures."""

    label: int
    """Cells before the line."""
    columns: int
    titles: tuple[tuple[str, int], ...]
    """What is written at the right end, and in how many cells."""
    is_short: bool
    """Labels are the short ones, and the figure now bears its unit."""


def figures_for(width: int) -> Figures:
    """As many figures as leave most of the row to the picture."""
    narrow, label = width < NARROW, label_cells(width)
    titles = [("now", 10 if narrow else 8)]
    titles += [("mean", 8)] if width >= MEAN_FROM else []
    titles += [("peak", 8)] if width >= PEAK_FROM else []
    titles += [] if narrow else [("scale", 11)]
    room = width - label - 2 - sum(cells for _, cells in titles)
    return Figures(label, max(1, room), tuple(titles), narrow)


def label_cells(width: int) -> int:
    """Of the labels at the left end."""
    return 9 if width < NARROW else 11


def titles_text(figures: Figures, now: str) -> str:
    """What the figures are; `now`: of which moment the first one is."""
    return "".join(
        f"{now if title == 'now' else title:>{cells}}" for title, cells in figures.titles
    )


def figures_text(
    figures: Figures, columns: Sequence[ChartColumn | None], now: float | None, scale: StripScale
) -> str:
    """The figures of one quantity; what was not measured is blank."""
    seen = [column for column in columns if column is not None]
    if figures.is_short:
        return "" if now is None else f"{scale.figure_of_scale(now, figures.titles[0][1]):>10}"
    texts = {
        "now": "" if now is None else scale.figure(now),
        "mean": scale.figure(sum(one.mean for one in seen) / len(seen)) if seen else "",
        "peak": scale.figure(max(one.peak for one in seen)) if seen else "",
        "scale": scale.words,
    }
    return "".join(f"{texts[title]:>{cells}}" for title, cells in figures.titles)


def hatched_row(label: str, what: str, why: str, figures: Figures) -> Row:
    """What cannot be measured here, and why: hatched, so that nobody takes it for nothing."""
    room = max(0, figures.columns - 5)
    full = f" {what}: {why}"
    reason = clip(full if cell_len(full) <= room else f" {why}", room) + " "
    left = max(0, figures.columns - cell_len(reason)) // 2
    right = max(0, figures.columns - left - cell_len(reason))
    return (
        Span(f"{label:>{figures.label}}┤{'╱' * left}", "dim"),
        Span(reason),
        Span("╱" * right, "dim"),
    )


def strip_rows(label: str, body: Sequence[str], figure_text: str, figures: Figures) -> list[Row]:
    """The strip; its label and its figures stand on its last row."""
    out: list[Row] = []
    for y, text in enumerate(body):
        named = y == len(body) - 1
        left = Span(f"{label if named else '':>{figures.label}}┤", "dim")
        out.append((left, Span(text, "area"), Span(f" {figure_text}" if named else "")))
    return out
