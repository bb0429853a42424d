"""The picture of use over time of a process without a GPU that tells its own."""

from statistics import median
from typing import Final

from tui.observations import ProcessesSeen
from tui.over_time.step_edges import StepEdges
from tui.session.computing import Computing, Span, grain_for
from tui.session.computing import spans_of as spans_of_step
from tui.session.on_cpu import OnCpu
from tui.session.step_book import StepBook
from tui.snapshot import Sawtooth

NO_GPU: Final = "no GPU here: the share of each moment the process computes rather than waits"
GPU_SILENT: Final = (
    "the GPU does not tell its use: the share of each moment the process computes rather than waits"
)
REGRAIN_ROWS: Final = 64
"""Steps between two looks at whether the grain still fits them."""
LAID_OUT_ROWS: Final = 2_000
"""So many are laid out again at another grain: some 50 ms of work, and it is rare."""


class ComputingSeries:
    """The stand-in without a GPU, at a grain that fits the steps."""

    def __init__(self, steps: StepBook) -> None:
        self._steps = steps
        self._on_cpu = OnCpu()
        self._computing = Computing(grain_for(0))
        self._until_look = 0

    def processes(self, seen: ProcessesSeen) -> None:
        """The kernel was asked what the process used."""
        self._on_cpu.seen(seen)

    def added(self, rows: int) -> None:
        """The newest `rows` rows of the step book are new."""
        self._until_look -= rows
        if self._until_look <= 0 and (row := self._steps.newest):
            self._until_look = REGRAIN_ROWS if row.number > REGRAIN_ROWS else 1
            held = self._steps.last(REGRAIN_ROWS)
            grain_ns = grain_for(median((s.end_ns - s.start_ns) / s.count for s in held))
            if grain_ns != self._computing.grain_ns:
                self._computing = Computing(grain_ns)
                rows = LAID_OUT_ROWS
        for step in self._steps.last(rows):
            self._computing.add(self._on_cpu.told(spans_of_step(step)))

    def sawtooth(
        self, open_spans: tuple[Span, ...], step_starts_ns: StepEdges, gpu_present: bool
    ) -> Sawtooth | None:
        """The picture; None before the first moment."""
        series = self._computing.series(self._on_cpu.told(open_spans))
        if not series.end_ns:
            return None
        return Sawtooth(
            title="process computes %",
            source=f"hook, {series.interval_ns // 1_000_000} ms",
            note=GPU_SILENT if gpu_present else NO_GPU,
            series=series,
            step_starts_ns=step_starts_ns,
        )
