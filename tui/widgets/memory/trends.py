"""Where it is heading: each memory with its trend, and when it will be full."""

from collections.abc import Sequence

from ...model.snapshot import Snapshot
from ...steps import GpuMemory
from ...timeseries.series import Series
from ...verdict.memory.trends import MemoryTrend, Whose
from ...wording.numbers import count, percent, size
from ...wording.processes import (
    findings_on,
    full_note,
    full_words,
    interval_words,
    memory_state_words,
    trend_of,
)
from ...wording.words import change_of
from ..charts.levels import held_at
from ..panel import Panel, View, charts_end_ns
from ..text import Row, Span, clip, joined, length, row, rule
from .holders import allocator_on, shown_gpu

TITLE = "Where it is heading"
WIDE, SEEN = 76, 90
"""Cells from which the figures have columns of their own; and the last column."""
NAMES: dict[Whose, str] = {"tensors": "tensors", "process": "process", "workers": "workers"}
SERIES: dict[Whose, str] = {"tensors": "allocated", "process": "host", "workers": "workers"}


class MemoryTrendsPanel(Panel):
    """One estimate serves the verdict and this table: the detector's."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, a row for each memory, the allocator's state, and what the verdict says."""
        snapshot = view.snapshot
        table = trend_rows(view, width, headed=True)
        if not table:
            return [rule(TITLE, (), width, self.has_focus), row("   not measured yet", "dim")]
        allocator = _allocator(snapshot, view.device, width)
        headed = width >= WIDE and height > 1 + len(table) + len(allocator)
        out = [rule(TITLE, _notes(view, width, headed), width, self.has_focus)]
        out += [_header(view, width)] if headed else []
        out += [*table, *allocator]
        return [*out, *_advice_rows(snapshot, width, height - len(out))]


def series_of(snapshot: Snapshot, whose: Whose) -> Series | None:
    """What is drawn of a memory."""
    name = SERIES[whose]
    return next((one for one in snapshot.series if one.name == name), None)


def _notes(view: View, width: int, headed: bool) -> list[str]:
    """What the columns are, where no row has room for their names."""
    if width < WIDE:
        return []
    if headed:
        return ["slope with its 95% interval"]
    return [f"slope {_per(view)} (95% interval)", "time to full"]


def _header(view: View, width: int) -> Row:
    last = "" if width < SEEN else "since b" if view.baseline is not None else "seen over"
    names = f"{'now':>9}  {'trend':<10}{_per(view):<26}{'full in':<20}  {last}"
    return row(f" {'':<10}{names}", "dim")


def _per(view: View) -> str:
    return "per 100 steps" if view.snapshot.sampled is None else "per 100 s"


def trend_rows(view: View, width: int, headed: bool) -> list[Row]:
    """One for each memory that is known; `headed` where the columns have names."""
    known = ((whose, series_of(view.snapshot, whose)) for whose in NAMES)
    return [_line(view, whose, one, width, headed) for whose, one in known if one is not None]


def _line(view: View, whose: Whose, series: Series, width: int, headed: bool) -> Row:
    trend = trend_of(view.snapshot, whose)
    glyph, word, role = memory_state_words(view.snapshot, trend, series.end_ns - series.start_ns)
    now = held_at(series, charts_end_ns(view))
    name = f"{NAMES[whose]:<{10 if width >= WIDE else 8}}"
    lead = (Span(f" {name}", "dim"), Span(f"{'' if now is None else size(now):>9}  ", "strong"))
    standing = Span(f"{glyph} {word:<8}", role)
    slope = "" if trend is None else interval_words(trend)
    if width < WIDE or not headed:
        if trend is None:
            return (*lead, standing)
        if width < WIDE:
            slope = slope.partition(" (")[0]
        parts = (f"{slope}/100 {trend.unit}", full_note(trend))
        words = joined(parts, width - length((*lead, standing)))
        return (*lead, standing, Span(words))
    full = "" if trend is None else full_words(trend)
    if width >= SEEN:
        spans = (Span(f"{slope:<26}"), Span(f"{full:<20}  ", "strong"))
        return (*lead, standing, *spans, _last(view, whose, now, trend))
    return (*lead, standing, *((Span(f"{slope:<26}"), Span(full, "strong")) if slope else ()))


def _last(view: View, whose: Whose, now: float | None, trend: MemoryTrend | None) -> Span:
    """The change against the baseline where one was marked, else how far the trend was seen."""
    if view.baseline is not None:
        before = series_of(view.baseline, whose)
        then = None if before is None else held_at(before, view.baseline.t_ns)
        change = change_of(then, now)
        return Span("as then", "dim") if change is None else Span(*change)
    return Span("" if trend is None else f"{count(trend.steps)} {trend.unit}", "dim")


def _allocator(snapshot: Snapshot, device: int | None, width: int) -> list[Row]:
    """ "allocator   2 retries · 0 out of memory · 1.2 GiB (2%) free in pieces · peak 62.0 GiB"."""
    reading = allocator_on(snapshot, shown_gpu(snapshot, device))
    if reading is None:
        return []
    text = joined(allocator_state(reading), width - 13)
    warns = reading.retries or reading.ooms
    return [(Span(" allocator  ", "dim"), Span(text, "warning" if warns else "text"))]


def allocator_state(reading: GpuMemory) -> list[str]:
    """Retries, failures, pieces, heights: since the start of the process."""
    retries = "1 retry" if reading.retries == 1 else f"{count(reading.retries)} retries"
    words = [retries, f"{count(reading.ooms)} out of memory"]
    if reading.inactive_split is not None and reading.reserved:
        part = percent(reading.inactive_split / reading.reserved)
        words.append(f"{size(reading.inactive_split)} ({part}) free in pieces")
    words.append(f"peak {size(reading.peak_allocated)}")
    if reading.allocations is not None:
        words.append(f"{count(reading.allocations)} tensors")
    return words


def _advice_rows(snapshot: Snapshot, width: int, room: int) -> list[Row]:
    """Cause and advice of what the verdict says of memory, as far as there is room."""
    out: list[Row] = []
    for finding in findings_on(snapshot):
        for evidence in finding.evidence[1:]:
            if "full" not in evidence.text:
                text = clip(f"{evidence.text}  [{evidence.source}]", width - 13)
                out.append((Span(" cause      ", "dim"), Span(text)))
        for advice in finding.advice[:1]:
            out.append((Span(" next       ", "dim"), Span(clip(advice, width - 13), "strong")))
    return out[: max(0, room)]
