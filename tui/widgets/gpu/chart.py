"""The picture of one GPU: the chart of its activity and the strips below it, on the same times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ...model.observations import GpuUse
from ...timeseries.series import NO_STEPS, Series
from ...wording.gpu import no_counters_words, sources_words
from ...wording.numbers import span
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
from ..charts.cursor import ON_AXIS, ChartPanel, column_at, marked
from ..panel import View, charts_end_ns
from ..text import Row, Span, cell_len, clip, joined, row, rule
from .devices import chosen_gpu, device_rows, title_of
from .sawtooth import why_empty
from .strips import (
    SIGNALS,
    Figures,
    Signal,
    StripScale,
    figures_for,
    figures_text,
    hatched_row,
    most_wanted,
    peak_of,
    scale_of,
    signals_of,
    strip_rows,
    titles_text,
)

# The rows of the chart of a GPU's activity: scale, area, axis, and the times below.

SCALE = 4
"""Cells of the scale's figures: " 100"."""


def chart_rows(
    name: str, body: Sequence[str], figures: Figures, titles: str, figure_text: str
) -> list[Row]:
    """A fixed 0 to 100. `titles` of the figures stand beside its first row, its own figures and its
    name beside the last."""
    rows = len(body)
    out: list[Row] = []
    for y, (mark, text) in enumerate(zip(_scale(rows), body, strict=True)):
        last = y == rows - 1
        left = clip(name, figures.label - SCALE) if last else ""
        right = Span(f" {figure_text}") if last else Span(f" {titles}" if y == 0 else "", "dim")
        scale = f"{left:>{figures.label - SCALE}}{mark:>{SCALE}}┤"
        out.append((Span(scale, "dim"), Span(text, "area"), right))
    return out


def _scale(rows: int) -> list[str]:
    """Always at the ends, 50 in the middle where there is one."""
    out = [""] * rows
    if rows >= 4:
        out[rows // 2] = "50"
    out[-1] = "0"
    if rows > 1:
        out[0] = "100"
    return out


def axis_row(line: str, figures: Figures) -> Row:
    """The axis."""
    return (Span(f"{'':{figures.label}}└{line}", "dim"),)


def caption_row(grid: Grid, notes: Sequence[str], newest: str, figures: Figures) -> Row:
    """How far back the picture goes, what a column is, and its legend."""
    columns = figures.columns
    back = f"-{span(grid.column_ns * columns / 1e9)}"
    room = columns - cell_len(back) - cell_len(newest) - 4
    middle = joined([grain_words(grid), *notes], room)
    pad = max(0, room - cell_len(middle)) // 2
    text = f"{back}  {'':{pad}}{middle}"
    left = f"{text:<{max(0, columns - cell_len(newest))}}"
    return (Span(f"{'':{figures.label + 1}}{left}{newest}", "dim"),)


NOW_NS: Final = 1_000_000_000
"""What "now" covers: a figure that changes ten times a second cannot be read."""
LEAST_CHART: Final = 4
"""Rows of the chart of the activity, its axis apart."""
TICK_COLUMNS: Final = 3.0
"""Ticks closer than this many columns are a line, so they are left out."""
NAMES: Final = {"sm": "SM", "busy": "busy", "computes": "host"}

ReadColumns = Callable[[Series, Sequence[ColumnSpan]], list[ChartColumn | None]]


@dataclass(frozen=True, slots=True)
class ChartRows:
    """How the rows are shared out."""

    chart: int
    each: int
    """Rows of every strip."""
    strips: int


def plan_of(room: int, strips: int) -> ChartRows:
    """The chart gets a third at least; strips get more than one row where all of them do."""
    least = max(LEAST_CHART, room // 3)
    each = next((rows for rows in (3, 2) if room - rows * strips >= least), 1)
    fitting = max(0, min(strips, (room - least) // each))
    return ChartRows(max(1, room - each * fitting), each, fitting)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is drawn."""

    gpu: GpuUse | None
    main: Series
    """The chart's."""
    others: dict[str, Series]
    """The strips', by name."""


class GpuPicture:
    """One frame of it."""

    def __init__(
        self, view: View, subject: Subject, grid: Grid, figures: Figures, read: ReadColumns
    ) -> None:
        self._view = view
        self._subject = subject
        self._grid = grid
        self._figures = figures
        self._read = read
        self._end_ns = charts_end_ns(view)
        saw = view.snapshot.sawtooth
        self._edges = saw.step_starts_ns if saw else NO_STEPS
        self._note = saw.note if saw and subject.gpu is None else ""
        self._times = stretches(grid, self._end_ns, figures.columns, self._edges)
        self.cells = cells(grid, self._end_ns, figures.columns)
        """The columns' own times."""
        self._cursor = column_at(self.cells, view.cursor_ns)

    def rows(self, height: int) -> list[Row]:
        """Chart, axis, strips, and what a column is."""
        subject, missing = self._subject, self._view.snapshot.status.missing
        columns = {name: self._read(one, self._times) for name, one in subject.others.items()}
        signals = signals_of(subject.others, columns)
        why = no_counters_words(missing) if subject.gpu else ""
        plan = plan_of(height - 2 - bool(why), len(signals))
        ticked = step_ns_of(self._view) >= TICK_COLUMNS * self._grid.column_ns
        out = [*self._chart(plan.chart), self._axis(ticked)]
        if why:
            out.append(hatched_row("counters", "SM, tensor, DRAM, PCIe", why, self._figures))
        for signal in most_wanted(signals, plan.strips):
            out += self._strip(signal, columns[signal.name], plan.each)
        notes = ["┴ step start" if ticked else "", self._note]
        newest = "end" if self._view.ended else "now" if self._view.at_ns is None else "then"
        return [*out, caption_row(self._grid, notes, newest, self._figures)]

    def _chart(self, rows: int) -> list[Row]:
        main = self._subject.main
        columns = self._read(main, self._times)
        titles = titles_text(self._figures, "now" if self._view.cursor_ns is None else "there")
        figure_text = self._figure_text(main, columns, scale_of(main, self._subject.gpu, 100.0))
        body = marked(area_rows(columns, rows), self._cursor)
        return chart_rows(
            NAMES.get(main.name, main.title), body, self._figures, titles, figure_text
        )

    def _axis(self, ticked: bool) -> Row:
        line = tick_row(self.cells, self._edges if ticked else NO_STEPS)
        return axis_row(marked([line], self._cursor, ON_AXIS)[0], self._figures)

    def _strip(self, signal: Signal, columns: Sequence[ChartColumn | None], rows: int) -> list[Row]:
        series = self._subject.others[signal.name]
        scale = scale_of(series, self._subject.gpu, peak_of(columns))
        label = signal.short if self._figures.is_short else signal.label
        body = marked(area_rows(columns, rows, 0.0, scale.top), self._cursor)
        return strip_rows(label, body, self._figure_text(series, columns, scale), self._figures)

    def _figure_text(
        self, series: Series, columns: Sequence[ChartColumn | None], scale: StripScale
    ) -> str:
        cursor_ns = self._view.cursor_ns
        at_ns = self._end_ns if cursor_ns is None else cursor_ns
        newest = series.over(at_ns - NOW_NS, at_ns, series.levels[0])
        return figures_text(self._figures, columns, newest.mean if newest else None, scale)


def step_ns_of(view: View) -> int:
    """The median step; 0 before there is one."""
    stats = view.snapshot.steps
    return int(stats.p50_ms * 1e6) if stats else 0


# A GPU over time, below a line for each where there are several.

ACTIVITY: Final = ("sm", "busy")
"""What the chart shows: the first that there is."""
SHOWN: Final = frozenset((*ACTIVITY, *(signal.name for signal in SIGNALS)))


class GpuChartsPanel(ChartPanel):
    """Keeps the grid of its last frame, and the columns that cannot change any more."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._grid: Grid | None = None
        self._columns = HeldColumns()
        self._strips = HeldColumns()

    def columns_in(self, width: int) -> int:
        """What the figures leave."""
        return figures_for(width).columns

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, a line for each of several GPUs, chart, axis, strips, times."""
        gpu = chosen_gpu(view)
        subject = _subject_of(view, gpu)
        read = (subject.main, *subject.others.values()) if subject else ()
        out = [rule(title_of(view, gpu), [sources_words(read)], width, self.has_focus)]
        if len(view.snapshot.gpus) > 1:
            out += device_rows(view, gpu, self._strips, width, most=max(2, height // 4))
        if subject is None:
            return [*out, row(f"   {why_empty(view.snapshot)}", "dim")]
        figures, window_ns = figures_for(width), view.window_s * 10**9
        interval_ns = interval_ns_of(subject.main, window_ns, charts_end_ns(view))
        step_ns = beat_ns(view.snapshot.steps)
        self._grid = grid_for(window_ns, figures.columns, interval_ns, step_ns, before=self._grid)
        picture = GpuPicture(view, subject, self._grid, figures, self._columns.of)
        self._cells = picture.cells
        return [*out, *picture.rows(height - len(out))]


def _subject_of(view: View, gpu: GpuUse | None) -> Subject | None:
    """The series of the GPU; without one what the process computes. None before the first."""
    found: dict[str, Series] = {}
    if gpu is not None:
        of_it = (one for one in view.snapshot.series if one.device == gpu.index)
        found = {one.name: one for one in of_it if one.name in SHOWN}
    main = next((found[name] for name in ACTIVITY if name in found), None)
    if main is None and view.snapshot.sawtooth is not None:
        main = view.snapshot.sawtooth.series
    return None if main is None else Subject(gpu, main, found)
