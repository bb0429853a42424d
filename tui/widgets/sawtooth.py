"""The sawtooth: utilisation over time, with the steps marked under it."""

from collections.abc import Sequence
from dataclasses import replace

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
from tui.widgets.gpu import gpu_rows
from tui.widgets.panel import Panel
from tui.widgets.spans import EMPTY, Row, Span, cell_len, clip, joined, rule
from tui.widgets.view import View, shown_at_ns
from tui.wording.numbers import grain, span

GUTTER = 5
"""Cells of the scale: " 100┤"."""
TENSOR_FROM, GPUS_FROM = 9, 12
"""Rows of the panel from which it has a strip for the tensor cores, and lines for the GPUs."""
TALL = 16
"""From here on the strip has two rows, and a second GPU gets a line for every three rows more."""
TICK_COLUMNS = 3.0
"""Ticks closer than this many columns are a line, so they are left out."""


class SawtoothPanel(Panel):
    """Keeps the grid of its last frame, so that the picture does not flicker between two grids."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._grid: Grid | None = None

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, GPUs, scale and area, axis with ticks, tensor cores, and the times."""
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
        tensor = columns_of(replace(saw, samples=saw.tensor), times) if saw.tensor else []
        out = [rule(saw.title, _notes(saw, columns), width, self.has_focus)]
        if height >= GPUS_FROM:
            out += gpu_rows(view.snapshot, width, 1 + max(0, height - TALL) // 3)
        strip = _strip(tensor, 2 if height >= TALL else 1) if height >= TENSOR_FROM else []
        timed = height >= 8
        room = height - len(out) - len(strip) - (2 if timed else 1)
        body = area_rows(columns, max(1, room))
        out += [
            (Span(label, "dim"), Span(text, "area"))
            for label, text in zip(scale(len(body)), body, strict=True)
        ]
        ticked = step_ns >= TICK_COLUMNS * self._grid.column_ns
        out += [_axis(times, saw.step_starts_ns if ticked else ()), *strip]
        if timed:
            said = [saw.note, _grain(self._grid), "┴ step start" if ticked else ""]
            said.append(f"ten: tensor cores, mean {mean_of(tensor):.0f}" if strip else "")
            back = f"-{span(self._grid.column_ns * count / 1e9)}"
            out.append(_times(back, said, "end" if view.ended else "now", width))
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


def mean_of(columns: Sequence[Column | None]) -> float:
    """Of those that were sampled; 0 of none."""
    seen = [column.mean for column in columns if column is not None]
    return sum(seen) / len(seen) if seen else 0.0


def _strip(tensor: Sequence[Column | None], rows: int) -> list[Row]:
    """The tensor cores on the same times; nothing where they are not measured."""
    if not any(tensor):
        return []
    labels = [" " * (GUTTER - 1) + "┤"] * (rows - 1) + [" ten┤"]
    body = area_rows(tensor, rows)
    return [
        (Span(label, "dim"), Span(text, "area")) for label, text in zip(labels, body, strict=True)
    ]


def _notes(saw: Sawtooth, columns: Sequence[Column | None]) -> list[str]:
    seen = [column for column in columns if column is not None]
    if not seen:
        return [saw.source]
    peak = max(column.peak for column in seen)
    return [saw.source, f"mean {mean_of(columns):.0f}", f"peak {peak:.0f}"]


def _grain(grid: Grid) -> str:
    if not grid.whole_steps:
        return f"a column is {grain(grid.column_ns)}"
    steps = "1 whole step" if grid.whole_steps == 1 else f"{grid.whole_steps} whole steps"
    return f"a column is {steps}"


def _times(back: str, said: Sequence[str], newest: str, width: int) -> Row:
    """The axis in words: how far back, what a column is, and whose time it is."""
    room = width - GUTTER - len(back) - len(newest) - 5
    first = next(part for part in said if part)
    middle = joined(said, room) or clip(first, room)
    pad = max(0, room - cell_len(middle)) // 2
    lead = f"{'':{GUTTER}}{back}  {'':{pad}}"
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
