"""When the process computes and when it waits, moment by moment, by its steps.

A step carries sums, not an order. It is laid out as a loop runs: the wait for a batch, then the
work on it, once for every fetch of the step.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median
from typing import Final

from ..model.observations import ProcessesSeen
from ..model.snapshot import Sawtooth
from ..steps import Step
from ..timeseries.series import Level, Rows, Series, StepEdges
from ..timeseries.writer import HOUR_NS, Growing
from .steps import StepStore

GRAINS_NS: Final = (20_000_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000)
MOMENTS: Final = 36_000
"""Held one by one: 12 min at the finest grain if no two were alike; 1.2 MB."""
ALIKE_NS: Final = 500_000_000
"""Moments of one colour are held together, up to this length."""
MOMENTS_A_STEP: Final = 50
"""A screen that shows four steps on a hundred columns of two dots has fifty dots for each."""
MOST_CYCLES: Final = 64
"""A row of more fetches than this is laid out as 64; no picture resolves them."""
COVERED: Final = 0.5
"""A moment of which less is known is left out, not guessed."""

PhaseSpan = tuple[int, int, float]
"""start_ns, end_ns, the share of it in which the process computes, 0 to 1."""


def grain_for(step_ns: float) -> int:
    """The grain that shows steps of this length as teeth."""
    for grain_ns in GRAINS_NS:
        if grain_ns >= step_ns / MOMENTS_A_STEP:
            return grain_ns
    return GRAINS_NS[-1]


def spans_of(step: Step) -> Iterator[PhaseSpan]:
    """The waits and the work of a step, in order and without a gap."""
    wait_ns = step.data_ns + step.startup_ns
    wall_ns = step.end_ns - step.start_ns
    share = min(1.0, wait_ns / wall_ns) if wall_ns else 0.0
    cycles = min(MOST_CYCLES, max(1, step.count, step.fetches))
    for cycle in range(cycles):
        start_ns = step.start_ns + wall_ns * cycle // cycles
        end_ns = step.start_ns + wall_ns * (cycle + 1) // cycles
        middle_ns = start_ns + round((end_ns - start_ns) * share)
        yield start_ns, middle_ns, 0.0
        yield middle_ns, end_ns, 1.0


class Computing:
    """The share of each moment in which the process computes."""

    def __init__(self, grain_ns: int) -> None:
        self.grain_ns = grain_ns
        self._done = Growing("computes", "training", "%", "hook", None, grain_ns, MOMENTS)
        self._moment = 0
        """Number of the moment that is being filled: `t_ns // grain_ns`."""
        self._computes_ns = 0.0
        self._known_ns = 0
        self._until_ns = 0
        """Up to where it is known."""

    def add(self, spans: Iterable[PhaseSpan]) -> None:
        """Lay out spans; they come in time order."""
        grain_ns = self.grain_ns
        for start_ns, end_ns, computes in spans:
            start_ns = max(start_ns, end_ns - HOUR_NS)  # a hang of days is one colour
            while start_ns < end_ns:
                moment = start_ns // grain_ns
                if moment != self._moment:
                    self._finish()
                    self._moment = moment
                whole_ns = min(ALIKE_NS, end_ns - start_ns) // grain_ns * grain_ns
                if whole_ns and not start_ns % grain_ns:
                    start_ns += whole_ns
                    self._done.add(start_ns, 100.0 * computes, whole_ns)
                    continue
                until_ns = min(end_ns, (moment + 1) * grain_ns)
                self._until_ns = until_ns
                self._known_ns += until_ns - start_ns
                self._computes_ns += computes * (until_ns - start_ns)
                start_ns = until_ns

    def series(self, open_spans: Iterable[PhaseSpan] = ()) -> Series:
        """All moments; `open_spans` is the step that runs now, which is not kept."""
        rows = Rows(sampled=True)
        if self._known_ns:
            area = 100.0 * self._computes_ns
            value = area / self._known_ns
            rows.append(self._until_ns, self._known_ns, area, value, value)
        for start_ns, end_ns, computes in open_spans:
            start_ns = max(start_ns, end_ns - HOUR_NS)
            value = 100.0 * computes
            rows.append(end_ns, end_ns - start_ns, value * (end_ns - start_ns), value, value)
        running = Level(rows, self.grain_ns, 0, len(rows.ends))
        return replace(self._done.series(), running=running)

    def _finish(self) -> None:
        if self._known_ns >= COVERED * self.grain_ns:
            end_ns = (self._moment + 1) * self.grain_ns
            share = self._computes_ns / self._known_ns
            self._done.add(end_ns, 100.0 * share, self._known_ns)
        self._computes_ns, self._known_ns = 0.0, 0


# How much of a long piece of work the training process was on a CPU, as the kernel counts it.

HELD: Final = 3_600
"""Stretches: an hour of looks once a second of which no two were alike."""
LEAST_NS: Final = 900_000_000
"""Of a look that lies in the work by less than about itself most may be of what was around."""


class OnCpu:
    """The main process over the last samples; equal neighbours are one span."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._spans: list[PhaseSpan] = []
        self._last_ns: int | None = None

    def seen(self, seen: ProcessesSeen) -> None:
        """Take a look, which covers the time since the last one."""
        since_ns, self._last_ns = self._last_ns, seen.t_ns
        percents = [use.cpu_percent for use in seen.processes if use.role == "main"]
        if since_ns is None or not percents or percents[0] is None or since_ns >= seen.t_ns:
            return
        share = min(1.0, round(percents[0]) / 100)
        if self._spans and self._spans[-1][1:] == (since_ns, share):
            since_ns = self._spans[-1][0]
            self._ends[-1], self._spans[-1] = seen.t_ns, (since_ns, seen.t_ns, share)
            return
        self._ends.append(seen.t_ns)
        self._spans.append((since_ns, seen.t_ns, share))
        if len(self._ends) > HELD * 5 // 4:
            del self._ends[:-HELD], self._spans[:-HELD]

    def corrected(self, spans: Iterable[PhaseSpan]) -> Iterator[PhaseSpan]:
        """The same spans, in which work takes the share that the kernel saw. Between looks it goes
        on as in the look before; work that is shorter than a look stays what it was."""
        for start_ns, end_ns, computes in spans:
            if not computes or end_ns - start_ns < LEAST_NS:
                yield start_ns, end_ns, computes
                continue
            parts = list(self._within(start_ns, end_ns)) or [(start_ns, end_ns, computes)]
            ends_ns = [part[0] for part in parts[1:]] + [end_ns]
            for (_, _, share), until_ns in zip(parts, ends_ns, strict=True):
                yield start_ns, until_ns, share
                start_ns = until_ns

    def _within(self, start_ns: int, end_ns: int) -> Iterator[PhaseSpan]:
        for at in range(bisect_right(self._ends, start_ns), len(self._ends)):
            since_ns, until_ns, share = self._spans[at]
            if since_ns >= end_ns:
                return
            since_ns, until_ns = max(since_ns, start_ns), min(until_ns, end_ns)
            if until_ns - since_ns >= LEAST_NS:
                yield since_ns, until_ns, share


# The picture of use over time of a process without a GPU that reports its own.

NO_GPU: Final = "no GPU: share of time the training process is not waiting"
GPU_SILENT: Final = "the GPU reports no use: share of time the training process is not waiting"
REGRAIN_ROWS: Final = 64
"""Steps between two looks at whether the grain still fits them."""
LAID_OUT_ROWS: Final = 2_000
"""So many are laid out again at another grain: some 50 ms of work, and it is rare."""


class ComputingSeries:
    """The stand-in without a GPU, at a grain that fits the steps."""

    def __init__(self, steps: StepStore) -> None:
        self._steps = steps
        self._on_cpu = OnCpu()
        self._computing = Computing(grain_for(0))
        self._until_look = 0

    def processes(self, seen: ProcessesSeen) -> None:
        """The kernel was asked what the process used."""
        self._on_cpu.seen(seen)

    def added(self, rows: int) -> None:
        """The newest `rows` rows of the step store are new."""
        self._until_look -= rows
        if self._until_look <= 0 and (row := self._steps.newest):
            self._until_look = REGRAIN_ROWS if row.number > REGRAIN_ROWS else 1
            held = self._steps.last(REGRAIN_ROWS)
            grain_ns = grain_for(median((s.end_ns - s.start_ns) / s.count for s in held))
            if grain_ns != self._computing.grain_ns:
                self._computing = Computing(grain_ns)
                rows = LAID_OUT_ROWS
        for step in self._steps.last(rows):
            self._computing.add(self._on_cpu.corrected(spans_of(step)))

    def sawtooth(
        self, open_spans: tuple[PhaseSpan, ...], step_starts_ns: StepEdges, gpu_present: bool
    ) -> Sawtooth | None:
        """The picture; None before the first moment."""
        series = self._computing.series(self._on_cpu.corrected(open_spans))
        if not series.end_ns:
            return None
        return Sawtooth(
            title="training %",
            source=f"hook, {series.interval_ns // 1_000_000} ms",
            note=GPU_SILENT if gpu_present else NO_GPU,
            series=series,
            step_starts_ns=step_starts_ns,
        )
