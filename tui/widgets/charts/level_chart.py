"""One quantity of bytes over time on a scale of its own, with the line of its trend."""

from collections.abc import Sequence
from dataclasses import dataclass

from tui.verdict.memory_trend import MemoryTrend
from tui.widgets.charts.columns import Column, Stretch, area_rows
from tui.widgets.charts.cursor import column_at, marked
from tui.widgets.spans import Row, Span
from tui.wording.numbers import scale_size

LABEL = 10
"""Cells of a label of the scale."""
BOTH_ENDS = 18
"""Cells of the label of a scale of one row: " 4.50 to 4.59 GiB"."""
LEAST_SPAN = 0.10
LEAST_SPAN_GROWING = 0.002
"""The scale spans at least this part of the value: noise must not look like growth."""
DASH = "─"
"""Of the line of the trend; it leaves every other column to what was measured."""
LEAST_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Scale:
    """What the chart's foot and its top stand for, bytes."""

    low: float
    high: float


def scale_of(columns: Sequence[Column | None], trend: MemoryTrend | None) -> Scale | None:
    """From the least to the most that is seen, what hardly moves in the middle; None of nothing."""
    seen = [column for column in columns if column is not None]
    if not seen:
        return None
    low, high = min(column.mean for column in seen), max(column.peak for column in seen)
    least = LEAST_SPAN if trend is None else LEAST_SPAN_GROWING
    spare = max(least * high, 1.0) - (high - low)
    return Scale(max(0.0, low - spare / 2), high + spare / 2) if spare > 0 else Scale(low, high)


def chart_rows(
    columns: Sequence[Column | None],
    times: Sequence[Stretch],
    rows: int,
    trend: MemoryTrend | None,
    cursor_ns: int | None = None,
) -> list[Row]:
    """Rows of the chart with the ends of its scale at the left; the trend's line where there is
    room for it, and the cursor."""
    scale = scale_of(columns, trend)
    if scale is None or rows < 1 or len(columns) < LEAST_COLUMNS:
        return []
    body = area_rows(columns, rows, scale.low, scale.high)
    if trend is not None and rows >= 3:
        column_ns = max(1, times[0].end_ns - times[0].start_ns)
        dashed = [
            height if time.start_ns // column_ns % 2 else None
            for time, height in zip(times, line_at(trend, times), strict=True)
        ]
        body = with_line(body, dashed, scale)
    body = marked(body, column_at(times, cursor_ns))
    labels = [" " * LABEL] * rows
    labels[0] = _label(scale.high, scale) if rows > 1 else _both_ends(scale)
    if rows > 1:
        labels[-1] = _label(scale.low, scale)
    return [
        (Span(f"{label}┤", "dim"), Span(text, "area"))
        for label, text in zip(labels, body, strict=True)
    ]


def line_at(trend: MemoryTrend, times: Sequence[Stretch]) -> list[float | None]:
    """Height of the trend's line in each stretch, bytes; None where it was not seen."""
    first, last = trend.first, trend.last
    if last.t_ns <= first.t_ns:
        return [None] * len(times)
    pace = (last.bytes - first.bytes) / (last.t_ns - first.t_ns)
    return [
        first.bytes + pace * (end_ns - first.t_ns) if first.t_ns <= end_ns <= last.t_ns else None
        for _, end_ns in times
    ]


def with_line(body: Sequence[str], heights: Sequence[float | None], scale: Scale) -> list[str]:
    """The rows with a dash in each column at the height that it has."""
    cells = [list(text) for text in body]
    rows = len(cells)
    for x, height in enumerate(heights):
        if height is None:
            continue
        up = int((height - scale.low) / (scale.high - scale.low) * rows)
        if 0 <= up < rows:
            cells[rows - 1 - up][x] = DASH
    return ["".join(row) for row in cells]


def _both_ends(scale: Scale) -> str:
    low, high = (scale_size(end, scale.high - scale.low) for end in (scale.low, scale.high))
    if low.split()[-1] == high.split()[-1]:
        low = low.split()[0]
    return f"{low} to {high}".rjust(BOTH_ENDS)


def _label(value: float, scale: Scale) -> str:
    return f"{scale_size(value, scale.high - scale.low):>{LABEL}}"
