"""A GPU over time, below a line for each where there are several."""

from collections.abc import Sequence
from typing import Final

from tui.observations import GpuUse
from tui.over_time.series import Series
from tui.widgets.charts.chart import ChartPanel
from tui.widgets.charts.columns import Grid, beat_ns, grid_for, interval_ns_of
from tui.widgets.charts.held_columns import HeldColumns
from tui.widgets.gpu.devices import chosen_gpu, device_rows, title_of
from tui.widgets.gpu.picture import GpuPicture, Subject
from tui.widgets.gpu.signals import SIGNALS
from tui.widgets.gpu.strips import figures_for
from tui.widgets.spans import Row, row, rule
from tui.widgets.view import View, charts_end_ns
from tui.wording.gpu import sources_words

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
            return [*out, row("   waiting for the first sample", "dim")]
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
