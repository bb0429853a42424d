"""The sawtooth: utilisation over time, with the steps marked under it."""

from collections.abc import Sequence

from tui.snapshot import Sawtooth
from tui.widgets.columns import (
    Column,
    Grid,
    Stretch,
    area_rows,
    columns_of,
    grid_for,
    stretches,
    tick_row,
)
from tui.widgets.panel import Panel
from tui.widgets.spans import EMPTY, Row, Span, cell_len, clip, joined, rule
from tui.widgets.view import View, shown_at_ns
from tui.wording.numbers import grain, span

GUTTER = 5
"""Cells of the scale: " 100┤"."""
TICK_COLUMNS = 3.0
"""Ticks closer than this many columns are a line, so they are left out."""


class SawtoothPanel(Panel):
    """Keeps the grid of its last frame, so that the picture does not flicker between two grids."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._grid: Grid | None = None

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, scale and area, axis with ticks, and the times where there is room."""
        saw = view.snapshot.sawtooth
        if saw is None or not saw.samples:
            return _empty(saw, width, height, self.has_focus)
        count = columns_of_width(width)
        stats = view.snapshot.steps
        step_ns = int(stats.p50_ms * 1e6) if stats else 0
        self._grid = grid_for(
            view.window_s * 10**9, count, saw.interval_ns, step_ns, before=self._grid
        )
        end_ns = shown_at_ns(view.snapshot)
        times = stretches(self._grid, end_ns, count, saw.step_starts_ns)
        columns = columns_of(saw, times)
        timed = height >= 8
        body = area_rows(columns, max(1, height - (3 if timed else 2)))
        notes = _notes(saw, columns)
        out = [rule(saw.title, notes, width, self.has_focus)]
        out += [
            (Span(label, "dim"), Span(text, "area"))
            for label, text in zip(scale(len(body)), body, strict=True)
        ]
        ticked = step_ns >= TICK_COLUMNS * self._grid.column_ns
        out.append(_axis(times, saw.step_starts_ns if ticked else ()))
        if timed:
            newest = "end" if view.ended else "now"
            out.append(_times(self._grid, count, saw.note, ticked, newest, width))
        return out


def columns_of_width(width: int) -> int:
    """Columns of the chart in a panel of this width."""
    return max(1, width - GUTTER - 1)


def scale(rows: int) -> list[str]:
    """Labels of a fixed 0 to 100: always at the ends, 50 in the middle where there is one."""
    out = [" " * (GUTTER - 1) + "┤"] * rows
    if rows >= 4:
        out[rows // 2] = "  50┤"
    out[-1] = "   0┤"
    out[0] = " 100┤"
    return out


def _axis(times: Sequence[Stretch], starts: Sequence[int]) -> Row:
    return (Span(" " * (GUTTER - 1) + "└", "dim"), Span(tick_row(times, starts), "dim"))


def _notes(saw: Sawtooth, columns: Sequence[Column | None]) -> list[str]:
    seen = [column for column in columns if column is not None]
    if not seen:
        return [saw.source]
    mean = sum(column.mean for column in seen) / len(seen)
    peak = max(column.peak for column in seen)
    return [saw.source, f"mean {mean:.0f}", f"peak {peak:.0f}"]


def _times(grid: Grid, columns: int, note: str, ticked: bool, newest: str, width: int) -> Row:
    """The axis in words: how far back, what a column is, and whose time it is."""
    left = f"-{span(grid.column_ns * columns / 1e9)}"
    room = width - GUTTER - len(left) - len(newest) - 5
    column = f"a column is {grain(grid.column_ns)}"
    if grid.whole_steps:
        steps = "1 whole step" if grid.whole_steps == 1 else f"{grid.whole_steps} whole steps"
        column = f"a column is {steps}"
    parts = [note, column, "┴ step start" if ticked else ""]
    middle = joined(parts, room) or clip(note or column, room)
    pad = max(0, room - cell_len(middle)) // 2
    lead = f"{'':{GUTTER}}{left}  {'':{pad}}"
    tail = width - 1 - len(lead) - cell_len(middle) - len(newest)
    return (Span(lead + middle, "dim"), Span(" " * max(1, tail) + newest, "dim"))


def _empty(saw: Sawtooth | None, width: int, height: int, focused: bool) -> list[Row]:
    """Before the first sample: the frame, so that nothing jumps when it comes."""
    title = saw.title if saw else "Utilisation %"
    body = max(1, height - 2)
    text = clip("waiting for the first sample", width - GUTTER - 2)
    out = [rule(title, (), width, focused)]
    for y, label in enumerate(scale(body)):
        said = f"{'':{(width - GUTTER - len(text)) // 2}}{text}" if y == body // 2 else ""
        out.append((Span(label, "dim"), Span(said, "dim")))
    return [*out, (Span(" " * (GUTTER - 1) + "└" + "─" * (width - GUTTER - 1), "dim"), *EMPTY)]
