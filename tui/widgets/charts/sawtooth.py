"""The sawtooth: utilisation over time, with the steps marked under it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tui.over_time.rhythm import period_of, rhythm_of, rhythm_words
from tui.over_time.series import Series
from tui.over_time.step_edges import NO_STEPS
from tui.snapshot import Sawtooth
from tui.widgets.charts.chart import ChartPanel
from tui.widgets.charts.columns import Grid, beat_ns, cells, grid_for, interval_ns_of, stretches
from tui.widgets.charts.cursor import column_at
from tui.widgets.charts.held_columns import HeldColumns
from tui.widgets.charts.sawtooth_rows import (
    Drawn,
    area_of,
    axis_of,
    below,
    columns_of_width,
    empty_rows,
    notes,
    strip_of,
)
from tui.widgets.gpu.lines import gpu_rows
from tui.widgets.spans import Row, rule
from tui.widgets.view import View, charts_end_ns

TENSOR_FROM: Final = 9
GPUS_FROM: Final = 12
"""Rows of the panel from which it has a strip for the tensor cores, and lines for the GPUs."""
TALL: Final = 16
"""From here on the strip has two rows, and a second GPU gets a line for every three rows more."""
TIMED_FROM: Final = 7
"""Rows from which the times are written below the axis."""
GUESS_NS: Final = 2_000_000_000
"""Between two guesses at the period where there are no steps: one takes a millisecond or two."""
ACTIVE: Final = {"sm": "SM active %", "busy": "GPU busy %"}
"""Series of one GPU that stand for its utilisation, the better one first."""


class SawtoothPanel(ChartPanel):
    """Keeps the grid of its last frame, so that the picture does not flicker between two grids, and
    the columns that cannot change any more."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._grid: Grid | None = None
        self._held = HeldColumns()
        self._guess_ns: float | None = None
        self._guessed_at_ns = 0

    def columns_in(self, width: int) -> int:
        """All but the scale."""
        return columns_of_width(width)

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, GPUs, scale and area, axis with ticks, tensor cores, and the times."""
        saw = shown_of(view)
        if saw is None:
            return empty_rows(width, height, self.has_focus)
        drawn = self._drawn_of(view, saw, columns_of_width(width))
        timed = height >= TIMED_FROM
        alike = beat_ns(view.snapshot.steps) > 0
        said = notes(drawn, self._rhythm(drawn, alike), timed)
        out = [rule(saw.title, said, width, self.has_focus)]
        if height >= GPUS_FROM:
            out += gpu_rows(view.snapshot, width, 1 + max(0, height - TALL) // 3)
        strip_rows = 2 if height >= TALL else 1
        strip = strip_of(drawn, strip_rows) if height >= TENSOR_FROM else []
        room = height - len(out) - len(strip) - (2 if timed else 1)
        out += [*area_of(drawn, max(1, room)), axis_of(drawn), *strip]
        if timed:
            out.append(below(drawn, view, bool(strip), width))
        return out

    def _drawn_of(self, view: View, saw: Sawtooth, count: int) -> Drawn:
        step_ns = beat_ns(view.snapshot.steps)
        window_ns, end_ns = view.window_s * 10**9, charts_end_ns(view)
        interval_ns = interval_ns_of(saw.series, window_ns, end_ns)
        grid = grid_for(window_ns, count, interval_ns, step_ns, before=self._grid)
        times = stretches(grid, end_ns, count, saw.step_starts_ns)
        self._grid, self._cells = grid, cells(grid, end_ns, count)
        return Drawn(
            saw=saw,
            interval_ns=interval_ns,
            recent=view.snapshot.recent,
            grid=grid,
            end_ns=end_ns,
            cells=self._cells,
            columns=self._held.of(saw.series, times),
            tensor=self._held.of(saw.tensor, times) if saw.tensor else [],
            cursor_ns=view.cursor_ns,
            cursor=column_at(self._cells, view.cursor_ns),
        )

    def _rhythm(self, drawn: Drawn, alike: bool) -> list[str]:
        """How it goes up and down, in words. Steps that are not alike have no period."""
        series, start_ns, end_ns = drawn.saw.series, drawn.cells[0].start_ns, drawn.end_ns
        edges = drawn.saw.step_starts_ns if alike else NO_STEPS
        guess_ns = None if edges else self._guessed_period(series, end_ns)
        rhythm = rhythm_of(series, edges, start_ns, end_ns, guess_ns)
        return rhythm_words(rhythm) if rhythm else []

    def _guessed_period(self, series: Series, end_ns: int) -> float | None:
        if abs(end_ns - self._guessed_at_ns) >= GUESS_NS:
            self._guess_ns, self._guessed_at_ns = period_of(series, end_ns), end_ns
        return self._guess_ns


def shown_of(view: View) -> Sawtooth | None:
    """The picture's, or where a person chose a GPU that tells its own, that one's."""
    saw, device = view.snapshot.sawtooth, view.device
    if saw is None or device is None or len(view.snapshot.gpus) < 2:
        return saw
    own = {one.name: one for one in view.snapshot.series if one.device == device}
    for name, title in ACTIVE.items():
        if name in own:
            tensor = own.get("tensor")
            return replace(saw, title=f"{title} of GPU {device}", series=own[name], tensor=tensor)
    return saw
