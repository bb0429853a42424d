"""The sawtooth: utilisation over time, with the steps marked under it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...model.snapshot import Sawtooth, Snapshot
from ...steps import Step
from ...timeseries.series import NO_STEPS, Series
from ...wording.numbers import count, duration, seconds, span
from ...wording.rhythm import period_of, rhythm_of, rhythm_words
from ..charts.columns import (
    ChartColumn,
    ColumnSpan,
    Grid,
    HeldColumns,
    area_rows,
    beat_ns,
    cells,
    grain_words,
    grid_for,
    interval_ns_of,
    stretches,
    tick_row,
)
from ..charts.cursor import MARK, ON_AXIS, ChartPanel, column_at, marked
from ..panel import View, charts_end_ns, has_measured
from ..steps.lanes import Pair, host_pieces
from ..steps.phases import LOOKS
from ..text import EMPTY, Row, Span, cell_len, clip, joined, rule
from .devices import gpu_rows

# The rows of the sawtooth: scale and area, axis with ticks, tensor cores, and the words below.

GUTTER: Final = 5
"""Cells of the scale: " 100┤"."""
TICK_COLUMNS: Final = 3.0
"""Ticks closer than this many columns are a line, so they are left out."""
WIDE: Final = 10.0
"""Points between the lowest and the mean from which the fills are explained."""
ENVELOPE: Final = "█ min  ▒ mean  ░ max per column"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one frame is drawn from."""

    saw: Sawtooth
    interval_ns: int
    """How fine what it shows is held."""
    recent: Sequence[Step]
    grid: Grid
    end_ns: int
    cells: Sequence[ColumnSpan]
    """The columns' own times."""
    columns: Sequence[ChartColumn | None]
    tensor: Sequence[ChartColumn | None]
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


def read_out(
    saw: Sawtooth,
    recent: Sequence[Step],
    t_ns: int,
    end_ns: int,
    column: ChartColumn | None,
    tensor: ChartColumn | None,
) -> list[str]:
    """What stood at the cursor: when, the values, the step and what it was doing."""
    name = saw.title.split()[0]
    words = [f"-{seconds((end_ns - t_ns) / 1e9)}"]
    words.append(f"{name} {_values(column)}" if column else f"{name} not measured")
    if tensor is not None:
        words.append(f"tensor {_values(tensor)}")
    number = saw.step_starts_ns.number_at(t_ns)
    if number is not None:
        words.append(f"step {count(number)}")
    doing = phase_at(recent, t_ns)
    if doing is not None:
        words.append(f"~{LOOKS[doing].long if doing in LOOKS else doing}")
    return words


def _values(column: ChartColumn) -> str:
    mean, peak, low = f"{column.mean:.0f}", f"{column.peak:.0f}", column.low
    if low is not None:
        return f"{mean} ({low:.0f}–{peak})"
    return mean if mean == peak else f"{mean}, peak {peak}"


def phase_at(steps: Sequence[Step], t_ns: int) -> str | None:
    """What the training thread did at a moment: of the phases' order and their sums, so about; None
    where the step is not held, or holds several of each."""
    at = bisect_right(steps, t_ns, key=lambda step: step.start_ns) - 1
    if at < 0 or t_ns >= steps[at].end_ns or max(steps[at].count, steps[at].fetches) > 1:
        return None
    pieces = host_pieces(Pair(steps[at], None))
    return next((piece.phase for piece in pieces if piece.start_ns <= t_ns < piece.end_ns), None)


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
    labels: Sequence[str], columns: Sequence[ChartColumn | None], cursor: int | None
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
    words = [ENVELOPE] if any(map(_wide, drawn.columns)) else []
    words += [drawn.saw.note]
    words += [grain_words(drawn.grid), "┴ step start" if drawn.ticked else ""]
    words += [f"ten: tensor cores, mean {mean_of(drawn.tensor):.0f}"] if with_tensor else []
    back_ns = drawn.grid.column_ns * len(drawn.cells)
    return _times(f"-{span(back_ns / 1e9)}", words, _newest(view), width)


def _wide(column: ChartColumn | None) -> bool:
    """Its lowest is distinct from its mean in the picture."""
    return column is not None and column.low is not None and column.mean - column.low >= WIDE


def mean_of(columns: Sequence[ChartColumn | None]) -> float:
    """Of those that were sampled; 0 of none."""
    seen = [column.mean for column in columns if column is not None]
    return sum(seen) / len(seen) if seen else 0.0


def _newest(view: View) -> str:
    if view.ended:
        return "end"
    if view.behind_s is None or view.behind_s < 1:
        return "now"
    return f"{duration(view.behind_s)} ago"


def _times(back: str, words: Sequence[str], newest: str, width: int) -> Row:
    room = width - GUTTER - len(back) - len(newest) - 5
    first = next(part for part in words if part)
    middle = joined(words, room) or clip(first, room)
    pad = max(0, room - cell_len(middle)) // 2
    lead = f"{'':{GUTTER}}{back}  {'':{pad}}"
    tail = width - 1 - len(lead) - cell_len(middle) - len(newest)
    return (Span(lead + middle, "dim"), Span(" " * max(1, tail) + newest, "dim"))


def why_empty(snapshot: Snapshot) -> str:
    """What stands where there is no picture over time."""
    if snapshot.gpus or not has_measured(snapshot):
        return "waiting for the first sample"
    return "no GPU, and no probe: use over time is not measured"


def empty_rows(view: View, width: int, height: int, focused: bool) -> list[Row]:
    """Before the first sample: the frame, so that nothing jumps when it comes."""
    body = max(1, height - 2)
    text = clip(why_empty(view.snapshot), width - GUTTER - 2)
    out = [rule("Utilisation %", (), width, focused)]
    for y, label in enumerate(scale(body)):
        line = f"{'':{(width - GUTTER - len(text)) // 2}}{text}" if y == body // 2 else ""
        out.append((Span(label, "dim"), Span(line, "dim")))
    return [*out, (Span(" " * (GUTTER - 1) + "└" + "─" * (width - GUTTER - 1), "dim"), *EMPTY)]


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
            return empty_rows(view, width, height, self.has_focus)
        drawn = self._drawn_of(view, saw, columns_of_width(width))
        timed = height >= TIMED_FROM
        alike = beat_ns(view.snapshot.steps) > 0
        words = notes(drawn, self._rhythm(drawn, alike), timed)
        out = [rule(saw.title, words, width, self.has_focus)]
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
    """The picture's, or where a person chose a GPU that reports its own, that one's."""
    saw, device = view.snapshot.sawtooth, view.device
    if saw is None or device is None or len(view.snapshot.gpus) < 2:
        return saw
    own = {one.name: one for one in view.snapshot.series if one.device == device}
    for name, title in ACTIVE.items():
        if name in own:
            tensor = own.get("tensor")
            return replace(saw, title=f"{title} of GPU {device}", series=own[name], tensor=tensor)
    return saw
