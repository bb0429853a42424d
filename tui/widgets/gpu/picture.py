"""The picture of one GPU: the chart of its activity and the strips below it, on the same times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tui.observations import GpuUse
from tui.over_time.series import Series
from tui.over_time.step_edges import NO_STEPS
from tui.widgets.charts.columns import Column, Grid, Stretch, area_rows, cells, stretches, tick_row
from tui.widgets.charts.cursor import ON_AXIS, column_at, marked
from tui.widgets.gpu.chart_rows import axis_row, caption_row, chart_rows
from tui.widgets.gpu.scales import Scale, scale_of
from tui.widgets.gpu.signals import Signal, most_wanted, peak_of, signals_of
from tui.widgets.gpu.strips import Figures, figures_text, hatched_row, strip_rows, titles_text
from tui.widgets.spans import Row
from tui.widgets.view import View, charts_end_ns
from tui.wording.gpu import no_counters_words

NOW_NS: Final = 1_000_000_000
"""What "now" speaks of: a figure that changes ten times a second cannot be read."""
LEAST_CHART: Final = 4
"""Rows of the chart of the activity, its axis apart."""
TICK_COLUMNS: Final = 3.0
"""Ticks closer than this many columns are a line, so they are left out."""
NAMES: Final = {"sm": "SM", "busy": "busy", "computes": "host"}

ReadColumns = Callable[[Series, Sequence[Stretch]], list[Column | None]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows are shared out."""

    chart: int
    each: int
    """Rows of every strip."""
    strips: int


def plan_of(room: int, strips: int) -> Plan:
    """The chart gets a third at least; strips get more than one row where all of them do."""
    least = max(LEAST_CHART, room // 3)
    each = next((rows for rows in (3, 2) if room - rows * strips >= least), 1)
    fitting = max(0, min(strips, (room - least) // each))
    return Plan(max(1, room - each * fitting), each, fitting)


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
        said = ["┴ step start" if ticked else "", self._note]
        newest = "end" if self._view.ended else "now" if self._view.at_ns is None else "then"
        return [*out, caption_row(self._grid, said, newest, self._figures)]

    def _chart(self, rows: int) -> list[Row]:
        main = self._subject.main
        columns = self._read(main, self._times)
        titles = titles_text(self._figures, "now" if self._view.cursor_ns is None else "there")
        told = self._told(main, columns, scale_of(main, self._subject.gpu, 100.0))
        body = marked(area_rows(columns, rows), self._cursor)
        return chart_rows(NAMES.get(main.name, main.title), body, self._figures, titles, told)

    def _axis(self, ticked: bool) -> Row:
        line = tick_row(self.cells, self._edges if ticked else NO_STEPS)
        return axis_row(marked([line], self._cursor, ON_AXIS)[0], self._figures)

    def _strip(self, signal: Signal, columns: Sequence[Column | None], rows: int) -> list[Row]:
        series = self._subject.others[signal.name]
        scale = scale_of(series, self._subject.gpu, peak_of(columns))
        label = signal.short if self._figures.is_short else signal.label
        body = marked(area_rows(columns, rows, 0.0, scale.top), self._cursor)
        return strip_rows(label, body, self._told(series, columns, scale), self._figures)

    def _told(self, series: Series, columns: Sequence[Column | None], scale: Scale) -> str:
        cursor_ns = self._view.cursor_ns
        at_ns = self._end_ns if cursor_ns is None else cursor_ns
        told = series.over(at_ns - NOW_NS, at_ns, series.levels[0])
        return figures_text(self._figures, columns, told.mean if told else None, scale)


def step_ns_of(view: View) -> int:
    """The median step; 0 before there is one."""
    stats = view.snapshot.steps
    return int(stats.p50_ms * 1e6) if stats else 0
