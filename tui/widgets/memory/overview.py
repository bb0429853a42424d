"""Memory on the overview: the one that grows, or else the GPU's, or the process's."""

from collections.abc import Sequence
from typing import Final

from ...model.snapshot import Snapshot
from ...timeseries.series import Series
from ...verdict.memory.trends import MemoryTrend, Whose
from ...wording.gpu import allocator_words
from ...wording.numbers import count, growth, size, span
from ...wording.processes import full_note, memory_state_words, trend_of
from ..charts.columns import HeldColumns
from ..charts.levels import BOTH_ENDS, LABEL, chart_rows, held_at, sampled_in, span_ns_of, times_of
from ..panel import Panel, View, charts_end_ns
from ..text import Row, Span, ends, first_that_fits, fit, length, row, rule
from .holders import shown_gpu
from .trends import NAMES, series_of, trend_rows

DRAWN: Final[dict[Whose, str]] = {
    "tensors": "Torch memory",
    "process": "Process memory",
    "workers": "Worker memory",
}
"""What the chart is of: the heading's figures are of other memories as well."""
LEAST_CHART: Final = LABEL + 20
"""Cells of width for a chart beside words."""


class MemoryPanel(Panel):
    """One line where there is little room; else a heading, the slope, and a trend. Keeps the
    columns that cannot change any more."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._held = HeldColumns()

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Of the memory that matters most."""
        snapshot = view.snapshot
        whose = first_of(snapshot)
        series = None if whose is None else series_of(snapshot, whose)
        if whose is None or series is None:
            waiting = "not measured yet"
            if height == 1:
                return [row(f" memory: {waiting}", "dim")]
            return [rule("Memory", (), width, self.has_focus), row(f"   {waiting}", "dim")]
        trend = trend_of(snapshot, whose)
        words = _words(snapshot, whose, series, trend)
        if height == 1:
            return [_one_line(view, whose, series, words[0], width)]
        title = f"{DRAWN[whose]}, last {span(span_ns_of(view, [series]) / 1e9)}"
        out = [rule(title, _notes(snapshot, view.device), width, self.has_focus)]
        if height <= 3:
            return [*out, *self._beside(view, series, trend, words, width, height - 1)]
        out += trend_rows(view, width, headed=False)
        out += [
            row(f" allocator {' · '.join(allocator_words(newest))}", "dim")
            for newest in snapshot.gpu_memory[-1:]
        ]
        return [*out, *self._chart(view, series, trend, width - 1, min(height - len(out), 12))]

    def _beside(
        self,
        view: View,
        series: Series,
        trend: MemoryTrend | None,
        words: Sequence[Row],
        width: int,
        height: int,
    ) -> list[Row]:
        """The chart on its scale, with the words at its right."""
        lines = list(words[:height])
        side = max(length(one) for one in lines) + 1
        if width - side < LEAST_CHART:
            return lines
        chart = self._chart(view, series, trend, width - side, height)
        if not chart:
            return lines
        lines += [()] * (len(chart) - len(lines))
        return [
            (*fit(left, width - side), *right) for left, right in zip(chart, lines, strict=True)
        ]

    def _chart(
        self, view: View, series: Series, trend: MemoryTrend | None, width: int, height: int
    ) -> list[Row]:
        label = LABEL if height > 1 else BOTH_ENDS
        times = times_of(view, [series], width - label - 1)
        columns = self._held.of(series, sampled_in(series, times))
        return chart_rows(columns, times, height, trend)


def first_of(snapshot: Snapshot) -> Whose | None:
    """What the verdict is about, else what rises, else the first that is known."""
    known: list[Whose] = [whose for whose in NAMES if series_of(snapshot, whose) is not None]
    trends = {whose: trend_of(snapshot, whose) for whose in known}
    growing = [whose for whose, trend in trends.items() if trend is not None and trend.finding]
    rising = [whose for whose, trend in trends.items() if trend is not None]
    return next(iter((*growing, *rising, *known)), None)


def _notes(snapshot: Snapshot, device: int | None) -> list[str]:
    memory, gpu = snapshot.memory, shown_gpu(snapshot, device)
    notes: list[str] = []
    if gpu is not None:
        notes.append(f"GPU {size(gpu.memory_used_bytes)} of {size(gpu.memory_total_bytes)}")
    if memory.held_bytes is not None:
        notes.append(f"process {size(memory.held_bytes)}")
    if memory.workers_bytes:
        notes.append(f"workers {size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes:
        notes.append(f"{size(memory.available_bytes)} of {size(memory.total_bytes)} free")
    return notes


def _words(
    snapshot: Snapshot, whose: Whose, series: Series, trend: MemoryTrend | None
) -> list[Row]:
    """What it does, and how far that was seen; the first is the one to keep."""
    glyph, word, role = memory_state_words(snapshot, trend, series.end_ns - series.start_ns)
    does = f"trend: {word}" if role == "dim" else f"{NAMES[whose]} {word}"
    does += "" if trend is None else " "
    head: Row = (Span(f" {glyph} ", role), Span(does, "text" if trend is None else "strong"))
    if trend is None:
        return [(*head, Span(" "))]
    full = full_note(trend)
    below = Span(f"   {f'{full} · ' if full else ''}{count(trend.steps)} {trend.unit} seen ", "dim")
    return [(*head, Span(f"{growth(100 * trend.slope.middle, trend.unit)} ")), (below,)]


def _one_line(view: View, whose: Whose, series: Series, head: Row, width: int) -> Row:
    """ " GPU 68.9 GiB of 140 GiB   ▲ tensors leak +150 MiB/100 steps": who holds it is whose trend
    it is."""
    gpu = shown_gpu(view.snapshot, view.device)
    if whose == "tensors" and gpu is not None:
        now, of = size(gpu.memory_used_bytes), f" of {size(gpu.memory_total_bytes)}"
        lead = Span(" GPU ", "dim")
    else:
        now, of = size(held_at(series, charts_end_ns(view)) or 0), ""
        lead = Span(" host " if whose == "process" else " workers ", "dim")
    short: Row = (lead, Span(now, "strong"))
    full: Row = (*short, Span(of, "dim"))
    head = first_that_fits((head, head[:2]), width - length(short) - 1)
    return ends(first_that_fits((full, short), width - length(head) - 1), head, width, gap=1)
