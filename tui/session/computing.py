"""When the process computes and when it waits, moment by moment, told from its steps.

A step carries sums, not an order. It is laid out as a loop runs: the wait for a batch, then the
work on it, once for every fetch of the step.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from probe.wire.messages import Step
from tui.over_time.growing import HOUR_NS, Growing
from tui.over_time.series import Level, Rows, Series

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

Span = tuple[int, int, float]
"""start_ns, end_ns, the share of it in which the process computes, 0 to 1."""


def grain_for(step_ns: float) -> int:
    """The grain that shows steps of this length as teeth."""
    for grain_ns in GRAINS_NS:
        if grain_ns >= step_ns / MOMENTS_A_STEP:
            return grain_ns
    return GRAINS_NS[-1]


def spans_of(step: Step) -> Iterator[Span]:
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
        self._done = Growing("computes", "process computes", "%", "hook", None, grain_ns, MOMENTS)
        self._moment = 0
        """Number of the moment that is being filled: `t_ns // grain_ns`."""
        self._computes_ns = 0.0
        self._known_ns = 0
        self._until_ns = 0
        """Up to where it is known."""

    def add(self, spans: Iterable[Span]) -> None:
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

    def series(self, open_spans: Iterable[Span] = ()) -> Series:
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
