"""The times of a chart that shows all that is known: a trend is slow."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from tui.over_time.growing import HOUR_NS
from tui.over_time.series import Series
from tui.widgets.charts.columns import Column, Stretch, columns_of
from tui.widgets.view import View, charts_end_ns

LEAST_S: Final = 10
"""So that the first seconds are not drawn as a whole history."""


def times_of(view: View, charts: Sequence[Series], columns: int) -> list[Stretch]:
    """An hour at most in so many columns, oldest first, on a grid of absolute time: each of whole
    samples of the finest series, or where those are few several of each sample, so that the picture
    begins where the first was taken."""
    end_ns = charts_end_ns(view)
    known_ns = end_ns - min(one.start_ns for one in charts)
    span_ns = min(max(known_ns, LEAST_S * 10**9), HOUR_NS)
    interval_ns = min(one.interval_ns for one in charts)
    columns = max(1, columns)
    samples = -(-span_ns // (columns * interval_ns))
    beside = columns * interval_ns // span_ns
    column_ns = samples * interval_ns if beside <= 1 else interval_ns // beside
    newest = -(-end_ns // column_ns)
    firsts = range(newest - columns, newest)
    return [Stretch(at * column_ns, (at + 1) * column_ns) for at in firsts]


def held_at(series: Series, at_ns: int) -> float | None:
    """What a series held when it was last read before a moment; None where it was not yet."""
    level = series.level_for(series.interval_ns, at_ns)
    after = bisect_right(level, at_ns, key=lambda point: point.t_ns)
    return level[after - 1].mean if after else None


def known_columns(series: Series, times: Sequence[Stretch]) -> list[Column | None]:
    """What a series held in each of the times. One that was sampled further apart than they are
    long shows the same in several beside each other: no more than was known."""
    if not times:
        return []
    apart, start_ns = series.interval_ns, times[0].start_ns
    column_ns = times[0].end_ns - start_ns
    if apart > column_ns:
        firsts = [time.start_ns // apart * apart for time in times]
        times = [Stretch(first, first + apart) for first in firsts]
    return columns_of(series, times, series.level_for(column_ns, start_ns))
