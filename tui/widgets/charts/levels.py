"""One quantity of bytes over time on a scale of its own, with the line of its trend."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...timeseries.series import Series
from ...timeseries.writer import HOUR_NS
from ...verdict.memory.trends import MemoryTrend
from ...wording.numbers import scale_size
from ..panel import View, charts_end_ns
from ..text import Row, Span
from .columns import ChartColumn, ColumnSpan, area_rows, columns_of, evenly
from .cursor import column_at, marked

# The times of a chart of what changes slowly: all that is known, or the window that was chosen.

LEAST_S: Final = 10
"""So that the first seconds are not drawn as a whole history, nor a few samples as a curve."""


def span_ns_of(view: View, charts: Sequence[Series]) -> int:
    """The time that these charts show, at least: an hour at most."""
    known_ns = charts_end_ns(view) - min(one.start_ns for one in charts)
    wanted_ns = view.window_s * 10**9 if view.window_chosen else known_ns
    return min(max(wanted_ns, LEAST_S * 10**9), HOUR_NS)


def times_of(view: View, charts: Sequence[Series], columns: int) -> Sequence[ColumnSpan]:
    """That time in so many columns, oldest first, on a grid of absolute time.

    A window that was chosen is cut evenly. All that is known becomes more from frame to frame: its
    columns stay as they are for as long as a quarter of the picture is not empty.
    """
    end_ns, span_ns = charts_end_ns(view), span_ns_of(view, charts)
    columns = max(1, columns)
    column_ns = span_ns // columns if view.window_chosen else _steady(span_ns, columns)
    newest = -(-end_ns // column_ns)
    return evenly(column_ns, newest - 1, columns)


def _steady(span_ns: int, columns: int) -> int:
    """A length of so many columns that seldom changes while the span grows: a power of two, or it
    with one, two or three quarters more."""
    least_ns = max(4, -(-span_ns // columns))
    quarter_ns = (1 << (least_ns.bit_length() - 1)) // 4
    return -(-least_ns // quarter_ns) * quarter_ns


def held_at(series: Series, at_ns: int) -> float | None:
    """What a series held when it was last read before a moment; None where it was not yet."""
    level = series.level_for(series.interval_ns, at_ns)
    after = bisect_right(level, at_ns, key=lambda point: point.t_ns)
    return level[after - 1].mean if after else None


def known_columns(series: Series, times: Sequence[ColumnSpan]) -> list[ChartColumn | None]:
    """What a series held in each of the times. One that was sampled further apart than they are
    long shows the same in several beside each other: no more than was known."""
    if not times:
        return []
    start_ns, end_ns = times[0]
    return columns_of(
        series, sampled_in(series, times), series.level_for(end_ns - start_ns, start_ns)
    )


def sampled_in(series: Series, times: Sequence[ColumnSpan]) -> Sequence[ColumnSpan]:
    """The times, or where a series was sampled further apart, those of the samples that they lie
    in."""
    apart = series.interval_ns
    if not times or apart <= times[0].end_ns - times[0].start_ns:
        return times
    firsts = [time.start_ns // apart * apart for time in times]
    return [ColumnSpan(first, first + apart) for first in firsts]


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
class LevelScale:
    """What the chart's foot and its top stand for, bytes."""

    low: float
    high: float


def scale_of(columns: Sequence[ChartColumn | None], trend: MemoryTrend | None) -> LevelScale | None:
    """From the least to the most that is seen, what hardly moves in the middle; None of nothing."""
    seen = [column for column in columns if column is not None]
    if not seen:
        return None
    low, high = min(column.mean for column in seen), max(column.peak for column in seen)
    least = LEAST_SPAN if trend is None else LEAST_SPAN_GROWING
    spare = max(least * high, 1.0) - (high - low)
    return (
        LevelScale(max(0.0, low - spare / 2), high + spare / 2)
        if spare > 0
        else LevelScale(low, high)
    )


def chart_rows(
    columns: Sequence[ChartColumn | None],
    times: Sequence[ColumnSpan],
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


def line_at(trend: MemoryTrend, times: Sequence[ColumnSpan]) -> list[float | None]:
    """Height of the trend's line in each stretch, bytes; None where it was not seen."""
    first, last = trend.first, trend.last
    if last.t_ns <= first.t_ns:
        return [None] * len(times)
    pace = (last.bytes - first.bytes) / (last.t_ns - first.t_ns)
    return [
        first.bytes + pace * (end_ns - first.t_ns) if first.t_ns <= end_ns <= last.t_ns else None
        for _, end_ns in times
    ]


def with_line(body: Sequence[str], heights: Sequence[float | None], scale: LevelScale) -> list[str]:
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


def _both_ends(scale: LevelScale) -> str:
    low, high = (scale_size(end, scale.high - scale.low) for end in (scale.low, scale.high))
    if low.split()[-1] == high.split()[-1]:
        low = low.split()[0]
    return f"{low} to {high}".rjust(BOTH_ENDS)


def _label(value: float, scale: LevelScale) -> str:
    return f"{scale_size(value, scale.high - scale.low):>{LABEL}}"
