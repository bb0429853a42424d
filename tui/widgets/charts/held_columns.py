"""Columns that cannot change any more, kept from frame to frame."""

from collections.abc import Sequence

from tui.over_time.series import Level, Series
from tui.widgets.charts.columns import Column, Stretch, columns_of


class HeldColumns:
    """What was worked out for the stretches of the last frame. A stretch that ends before the
    newest sample is told in full: only the others are read again."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int | None], tuple[int, dict[Stretch, Column | None]]] = {}
        """With where the series began: another process's has another beginning."""

    def of(self, series: Series, times: Sequence[Stretch]) -> list[Column | None]:
        """The columns at the level that fits; a sample that is longer than a column fills several,
        all at its value."""
        key = (series.name, series.device)
        start_ns, held = self._held.get(key, (0, {}))
        if start_ns != series.start_ns:
            held = {}
        fresh = [stretch for stretch in times if stretch not in held]
        if fresh:
            longest_ns = max(end - start for start, end in times)
            level = series.level_for(longest_ns, times[0].start_ns)
            read = columns_of if longest_ns >= series.interval_ns else _filled
            held = {**held, **dict(zip(fresh, read(series, fresh, level), strict=True))}
        columns = [held[stretch] for stretch in times]
        end_ns = series.levels[0].end_ns  # what is `running` may turn out otherwise
        kept = {stretch: held[stretch] for stretch in times if stretch.end_ns < end_ns}
        self._held[key] = series.start_ns, kept
        return columns


def _filled(series: Series, times: Sequence[Stretch], level: Level) -> list[Column | None]:
    told = [series.over(*stretch, level) for stretch in times]
    return [None if one is None else Column(one.mean, one.mean) for one in told]
