"""What no step on the GPU's clock holds: epochs that begin and pauses, in steps between those."""

from dataclasses import dataclass
from functools import lru_cache

from tui.verdict.spent import aside_of, wall_of
from tui.verdict.window import Window


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Parts of the window's time, 0 to 1, in steps that the GPU's clock did not measure."""

    starting: float
    """The loader's start-up."""
    aside: float
    """Evaluation, checkpoints and compilation."""

    @property
    def left(self) -> float:
        """Of the time, what is spent in steps like the measured ones."""
        return max(0.0, 1.0 - self.starting - self.aside)


@lru_cache(maxsize=4)
def unmeasured(window: Window) -> Unmeasured:
    """A few steps in which an epoch begins may take longer than all others together, and where
    only one step in ten is measured they are rarely among them. Worked out once a window."""
    measured = {row.number for row in window.gpu_steps}
    others = [row for row in window.steps if row.number not in measured]
    whole = sum(map(wall_of, window.steps))
    if whole <= 0:
        return Unmeasured(0.0, 0.0)
    starting = sum(row.startup_ns for row in others)
    return Unmeasured(starting / whole, sum(map(aside_of, others)) / whole)
