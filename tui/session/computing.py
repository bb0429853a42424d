"""When the process computes and when it waits, moment by moment, told from its steps.

A step carries sums, not an order. It is laid out as a loop runs: the wait for a batch, then the
work on it, once for every fetch of the step.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from probe.wire.messages import Step
from tui.snapshot import Sample

GRAINS_NS: Final = (20_000_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000)
MOMENTS: Final = 2400
"""48 s at the finest grain; some 250 kB."""
MOMENTS_A_STEP: Final = 50
"""A screen that shows four steps on a hundred columns of two dots has fifty dots for each."""
MOST_CYCLES: Final = 64
"""A row of more fetches than this is laid out as 64; no picture resolves them."""
COVERED: Final = 0.5
"""A moment of which less is known is left out, not guessed."""

Span = tuple[int, int, bool]
"""start_ns, end_ns, whether the process computes in it."""


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
        yield start_ns, middle_ns, False
        yield middle_ns, end_ns, True


class Computing:
    """The share of each moment in which the process computes."""

    def __init__(self, grain_ns: int) -> None:
        self.grain_ns = grain_ns
        self._done: deque[Sample] = deque(maxlen=MOMENTS)
        self._moment = 0
        """Number of the moment that is being filled: `t_ns // grain_ns`."""
        self._computes_ns = 0
        self._known_ns = 0

    def add(self, spans: Iterable[Span]) -> None:
        """Lay out spans; they come in time order."""
        grain_ns = self.grain_ns
        for start_ns, end_ns, computes in spans:
            start_ns = max(start_ns, end_ns - MOMENTS * grain_ns)  # a hang of hours is one colour
            while start_ns < end_ns:
                moment = start_ns // grain_ns
                if moment != self._moment:
                    self._finish()
                    self._moment = moment
                until_ns = min(end_ns, (moment + 1) * grain_ns)
                self._known_ns += until_ns - start_ns
                if computes:
                    self._computes_ns += until_ns - start_ns
                start_ns = until_ns

    def samples(self, open_spans: Iterable[Span] = ()) -> tuple[Sample, ...]:
        """All moments, oldest first; `open_spans` is the step that runs now, which is not kept."""
        running = Computing(self.grain_ns)
        running._moment = self._moment
        running._computes_ns, running._known_ns = self._computes_ns, self._known_ns
        running.add(open_spans)
        return (*self._done, *running._done)[-MOMENTS:]

    def _finish(self) -> None:
        if self._known_ns >= COVERED * self.grain_ns:
            end_ns = (self._moment + 1) * self.grain_ns
            self._done.append(Sample(end_ns, 100.0 * self._computes_ns / self._known_ns))
        self._computes_ns = self._known_ns = 0
