"""Where the steps began: what the ticks of the pictures over time are drawn from."""

from array import array
from collections.abc import Sequence
from typing import Final

from probe.wire.messages import Step
from tui.over_time.step_edges import StepEdges

HELD: Final = 65_536
"""1 MB: an hour of 18 steps a second. Of faster ones no picture of an hour can show a tick."""


class EdgeBook:
    """Appends; what it gave before stays as it is."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._numbers = array("q")
        self._end_ns = 0

    def ended(self, steps: Sequence[Step]) -> None:
        """Rows of steps that ended, oldest first, each once."""
        if len(self._starts) >= HELD * 5 // 4:
            self._starts, self._numbers = self._starts[-HELD:], self._numbers[-HELD:]
        for step in steps:
            self._starts.append(step.start_ns)
            self._numbers.append(step.number)
            self._end_ns = step.end_ns

    def edges(self) -> StepEdges:
        """All that are held."""
        held = len(self._starts)
        return StepEdges(self._starts, self._numbers, self._end_ns, max(0, held - HELD), held)
