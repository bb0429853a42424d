"""Memory over time: one chart for each quantity on a scale of its own, all on one time axis."""

from collections.abc import Sequence
from typing import Final

from ...model.snapshot import Snapshot
from ...timeseries.series import Series
from ...verdict.memory.trends import MemoryTrend, Whose
from ...wording.numbers import duration, size, span
from ...wording.processes import trend_of
from ..charts.columns import ChartColumn, ColumnSpan
from ..charts.cursor import ChartPanel, column_at
from ..charts.levels import DASH, LABEL, chart_rows, held_at, known_columns, times_of
from ..panel import View, charts_end_ns
from ..text import EMPTY, Row, Span, fit, joined, row, rule
from .holders import shown_gpu

ORDER: Final = ("allocated", "host", "reserved", "workers", "others")
"""Growth of any of them shows in one of the first two."""
WHOSE: Final[dict[str, Whose]] = {"allocated": "tensors", "host": "process", "workers": "workers"}
MOVES: Final = 0.05
"""What others hold has a chart once it has changed by this part: the bar shows it as well."""
TWO_FROM: Final = 76
"""Cells of width for two charts beside each other."""
GAP: Final = 2
LEAST_ROWS: Final = 3
"""Of a chart with its heading."""
AXIS_FROM: Final = 7


class MemoryChartsPanel(ChartPanel):
    """Two columns where there is room, else one; what does not fit is left out, the last first."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Headings, areas, and one axis below."""
        charts = shown_series(view.snapshot, view.device)
        if not charts:
            return [
                rule("Memory over time", (), width, self.has_focus),
                row("   not measured yet", "dim"),
            ]
        across = 2 if width >= TWO_FROM and len(charts) > 1 else 1
        axis = 1 if height >= AXIS_FROM else 0
        down = max(1, min(-(-len(charts) // across), (height - axis) // LEAST_ROWS))
        shown = charts[: across * down]
        one_width = (width - GAP * (across - 1)) // across
        self._cells = times = times_of(view, shown, one_width - LABEL - 2)
        out: list[Row] = []
        heights = _shared_out(height - axis, down)
        for y, rows in enumerate(heights):
            beside = shown[y * across : (y + 1) * across]
            drawn = [
                _chart(view, series, times, one_width, rows, self.has_focus and not (y or x))
                for x, series in enumerate(beside)
            ]
            out += _beside(drawn, one_width)
        if axis:
            out.append(_axis(view, times, one_width))
        return out


def shown_series(snapshot: Snapshot, device: int | None) -> list[Series]:
    """What is known, of the GPU that is shown; the allocator's numbers of devices are torch's."""
    gpu = shown_gpu(snapshot, device)
    at = next((i for i, one in enumerate(snapshot.gpus) if one is gpu), 0)
    out: list[Series] = []
    for name in ORDER:
        named = [one for one in snapshot.series if one.name == name and one.end_ns]
        wanted = gpu.index if gpu is not None and name == "others" else at
        mine = [one for one in named if len(named) == 1 or one.device in (None, wanted)]
        out += [one for one in mine[:1] if name != "others" or _moves(one)]
    return out


def _moves(series: Series) -> bool:
    """By its roll-ups, or as it was sampled while there are none."""
    points = series.levels[-1] or series.levels[0]
    most = max(point.high for point in points)
    return most - min(point.low for point in points) >= MOVES * most


def _chart(
    view: View, series: Series, times: Sequence[ColumnSpan], width: int, height: int, focused: bool
) -> list[Row]:
    trend = _trend(view.snapshot, series)
    columns = known_columns(series, times)
    body = chart_rows(columns, times, height - 1, trend, view.cursor_ns)
    notes = _notes(view, series, columns, times)
    return [rule(series.title, notes, width, focused), *body][:height]


def _trend(snapshot: Snapshot, series: Series) -> MemoryTrend | None:
    whose = WHOSE.get(series.name)
    return trend_of(snapshot, whose) if whose else None


def _notes(
    view: View, series: Series, columns: Sequence[ChartColumn | None], times: Sequence[ColumnSpan]
) -> list[str]:
    """What it holds now, or held in the cursor's column."""
    at = column_at(times, view.cursor_ns)
    if at is not None:
        column = columns[at]
        return ["not measured there" if column is None else f"there {size(column.mean)}"]
    now = held_at(series, charts_end_ns(view))
    return ["" if now is None else size(now), f"{series.source} {span(series.interval_ns / 1e9)}"]


def _shared_out(rows: int, count: int) -> list[int]:
    """The rows in equal parts, the first ones larger."""
    each, more = divmod(rows, count)
    return [each + (i < more) for i in range(count)]


def _beside(charts: Sequence[Sequence[Row]], width: int) -> list[Row]:
    """Charts of one height beside each other."""
    height = max(len(chart) for chart in charts)
    out: list[Row] = []
    for y in range(height):
        cells = [fit(chart[y] if y < len(chart) else EMPTY, width) for chart in charts]
        joined_row: Row = cells[0]
        for cell in cells[1:]:
            joined_row = (*joined_row, Span(" " * GAP), *cell)
        out.append(joined_row)
    return out


def _axis(view: View, times: Sequence[ColumnSpan], width: int) -> Row:
    """How far back, what a column is or where the cursor reads, and whose time it ends at."""
    end_ns = charts_end_ns(view)
    column_ns = times[0].end_ns - times[0].start_ns
    back = f"-{span((times[-1].end_ns - times[0].start_ns) / 1e9)}"
    ends = "end" if view.ended else "now"
    if view.at_ns is not None:
        ends = f"-{duration((view.snapshot.t_ns - end_ns) / 1e9)}"
    words = [f"a column is {span(column_ns / 1e9)}", f"{DASH} trend"]
    if view.cursor_ns is not None and column_at(times, view.cursor_ns) is not None:
        words = [f"│ -{duration((end_ns - view.cursor_ns) / 1e9)}"]
    middle = joined(words, width - LABEL - len(back) - len(ends) - 4)
    lead = f"{'':{LABEL + 1}}{back}"
    return (Span(f"{lead}{middle:^{max(0, width - len(lead) - len(ends) - 1)}}{ends}", "dim"),)
