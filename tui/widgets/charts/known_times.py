"""The times of a chart of what changes slowly: all that is known, or the window that was chosen."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from tui.over_time.growing import HOUR_NS
from tui.over_time.series import Series
from tui.widgets.charts.columns import Column, Stretch, columns_of, evenly
from tui.widgets.view import View, charts_end_ns

LEAST_S: Final = 10
"""So that the first seconds are not drawn as a whole history, nor a few samples as a curve."""


def span_ns_of(view: View, charts: Sequence[Series]) -> int:
    """The time that these charts show, at least: an hour at most."""
    known_ns = charts_end_ns(view) - min(one.start_ns for one in charts)
    wanted_ns = view.window_s * 10**9 if view.window_chosen else known_ns
    return min(max(wanted_ns, LEAST_S * 10**9), HOUR_NS)


def times_of(view: View, charts: Sequence[Series], columns: int) -> Sequence[Stretch]:
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


def known_columns(series: Series, times: Sequence[Stretch]) -> list[Column | None]:
    """What a series held in each of the times. One that was sampled further apart than they are
    long shows the same in several beside each other: no more than was known."""
    if not times:
        return []
    start_ns, end_ns = times[0]
    return columns_of(
        series, sampled_in(series, times), series.level_for(end_ns - start_ns, start_ns)
    )


def sampled_in(series: Series, times: Sequence[Stretch]) -> Sequence[Stretch]:
    """The times, or where a series was sampled further apart, those of the samples that they lie
    in."""
    apart = series.interval_ns
    if not times or apart <= times[0].end_ns - times[0].start_ns:
        return times
    firsts = [time.start_ns // apart * apart for time in times]
    return [Stretch(first, first + apart) for first in firsts]
