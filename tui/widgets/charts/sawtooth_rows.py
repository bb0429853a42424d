"""The rows of the sawtooth: scale and area, axis with ticks, tensor cores, and the words below."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from probe.wire.messages import Step
from tui.over_time.step_edges import NO_STEPS
from tui.snapshot import Sawtooth
from tui.widgets.charts.columns import Column, Grid, Stretch, area_rows, grain_words, tick_row
from tui.widgets.charts.cursor import MARK, ON_AXIS, marked, read_out
from tui.widgets.spans import EMPTY, Row, Span, cell_len, clip, joined, rule
from tui.widgets.view import View
from tui.wording.numbers import duration, span

GUTTER: Final = 5
"""Cells of the scale: " 100┤"."""
TICK_COLUMNS: Final = 3.0
"""Ticks closer than this many columns are a line, so they are left out."""
WIDE: Final = 10.0
"""Points between the lowest and the mean from which the fills are explained."""
ENVELOPE: Final = "█ lowest  ▒ to the mean  ░ highest"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one frame is drawn from."""

    saw: Sawtooth
    interval_ns: int
    """How fine what it shows is held."""
    recent: Sequence[Step]
    grid: Grid
    end_ns: int
    cells: Sequence[Stretch]
    """The columns' own times."""
    columns: Sequence[Column | None]
    tensor: Sequence[Column | None]
    cursor_ns: int | None
    cursor: int | None
    """Its column; None where it is not in the picture."""

    @property
    def ticked(self) -> bool:
        """There are steps, and they are far enough apart to be marked."""
        edges = self.saw.step_starts_ns
        shown = edges.before(self.end_ns) - edges.before(self.cells[0].start_ns)
        return 0 < shown * TICK_COLUMNS <= len(self.cells)

    def read(self) -> list[str]:
        """What stands at the cursor; nothing where there is none in the picture."""
        if self.cursor is None or self.cursor_ns is None:
            return []
        tensor = self.tensor[self.cursor] if self.tensor else None
        column = self.columns[self.cursor]
        return read_out(self.saw, self.recent, self.cursor_ns, self.end_ns, column, tensor)


def columns_of_width(width: int) -> int:
    """Columns of the chart in a panel of this width."""
    return max(1, width - GUTTER - 1)


def notes(drawn: Drawn, rhythm: Sequence[str], timed: bool) -> list[str]:
    """For the heading: the source and the rhythm, or what the cursor reads where no other row has
    room for it."""
    read = drawn.read()
    if read and not timed:
        return read
    series = drawn.saw.series
    rolled_up = (
        drawn.interval_ns > series.interval_ns and drawn.grid.column_ns < 2 * drawn.interval_ns
    )
    source = f"{series.source}, {span(drawn.interval_ns / 1e9)} means"
    return [source if rolled_up else drawn.saw.source, *rhythm]


def scale(rows: int) -> list[str]:
    """Labels of a fixed 0 to 100: always at the ends, 50 in the middle where there is one."""
    out = [" " * (GUTTER - 1) + "┤"] * rows
    if rows >= 4:
        out[rows // 2] = "  50┤"
    out[-1] = "   0┤"
    out[0] = " 100┤"
    return out


def area_of(drawn: Drawn, rows: int) -> list[Row]:
    """The scale and the area."""
    return _labelled(scale(rows), drawn.columns, drawn.cursor)


def strip_of(drawn: Drawn, rows: int) -> list[Row]:
    """The tensor cores on the same times; nothing where they are not measured."""
    if not any(drawn.tensor):
        return []
    labels = [" " * (GUTTER - 1) + "┤"] * (rows - 1) + [" ten┤"]
    return _labelled(labels, drawn.tensor, drawn.cursor)


def _labelled(
    labels: Sequence[str], columns: Sequence[Column | None], cursor: int | None
) -> list[Row]:
    body = marked(area_rows(columns, len(labels)), cursor, MARK)
    return [
        (Span(label, "dim"), Span(text, "area")) for label, text in zip(labels, body, strict=True)
    ]


def axis_of(drawn: Drawn) -> Row:
    """The axis with its ticks; dashed where nothing was measured."""
    starts = drawn.saw.step_starts_ns if drawn.ticked else NO_STEPS
    newest_ns = drawn.saw.series.end_ns
    unknown = [
        column is None and cell.start_ns < newest_ns
        for column, cell in zip(drawn.columns, drawn.cells, strict=True)
    ]
    (line,) = marked([tick_row(drawn.cells, starts, unknown)], drawn.cursor, ON_AXIS)
    return (Span(" " * (GUTTER - 1) + "└" + line, "dim"),)


def below(drawn: Drawn, view: View, with_tensor: bool, width: int) -> Row:
    """What the cursor reads, or the axis in words: how far back, what a column is, whose time."""
    read = drawn.read()
    if read:
        room = width - GUTTER - 3
        return (Span(f"{'':{GUTTER}}{ON_AXIS} ", "focus"), Span(joined(read, room)))
    said = [ENVELOPE] if any(map(_wide, drawn.columns)) else []
    said += [drawn.saw.note]
    said += [grain_words(drawn.grid), "┴ step start" if drawn.ticked else ""]
    said += [f"ten: tensor cores, mean {mean_of(drawn.tensor):.0f}"] if with_tensor else []
    back_ns = drawn.grid.column_ns * len(drawn.cells)
    return _times(f"-{span(back_ns / 1e9)}", said, _newest(view), width)


def _wide(column: Column | None) -> bool:
    """Its lowest can be told from its mean in the picture."""
    return column is not None and column.low is not None and column.mean - column.low >= WIDE


def mean_of(columns: Sequence[Column | None]) -> float:
    """Of those that were sampled; 0 of none."""
    seen = [column.mean for column in columns if column is not None]
    return sum(seen) / len(seen) if seen else 0.0


def _newest(view: View) -> str:
    if view.ended:
        return "end"
    if view.behind_s is None or view.behind_s < 1:
        return "now"
    return f"{duration(view.behind_s)} ago"


def _times(back: str, said: Sequence[str], newest: str, width: int) -> Row:
    room = width - GUTTER - len(back) - len(newest) - 5
    first = next(part for part in said if part)
    middle = joined(said, room) or clip(first, room)
    pad = max(0, room - cell_len(middle)) // 2
    lead = f"{'':{GUTTER}}{back}  {'':{pad}}"
    tail = width - 1 - len(lead) - cell_len(middle) - len(newest)
    return (Span(lead + middle, "dim"), Span(" " * max(1, tail) + newest, "dim"))


def empty_rows(width: int, height: int, focused: bool) -> list[Row]:
    """Before the first sample: the frame, so that nothing jumps when it comes."""
    body = max(1, height - 2)
    text = clip("waiting for the first sample", width - GUTTER - 2)
    out = [rule("Utilisation %", (), width, focused)]
    for y, label in enumerate(scale(body)):
        said = f"{'':{(width - GUTTER - len(text)) // 2}}{text}" if y == body // 2 else ""
        out.append((Span(label, "dim"), Span(said, "dim")))
    return [*out, (Span(" " * (GUTTER - 1) + "└" + "─" * (width - GUTTER - 1), "dim"), *EMPTY)]
