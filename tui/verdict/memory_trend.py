"""The trend of one memory: the same for what is said of it and for what is drawn."""

from dataclasses import dataclass
from statistics import median
from typing import Literal

from tui.verdict.exhaustion import Exhaustion
from tui.verdict.findings import Finding
from tui.verdict.growth import Growth
from tui.verdict.trend import Slope
from tui.verdict.window import MemoryPoint, Window

Unit = Literal["steps", "s"]
"""What memory goes by: seconds where nobody sees steps."""
Whose = Literal["tensors", "process", "workers"]
"""The device's, the training process's, its workers' together."""


@dataclass(frozen=True, slots=True)
class MemoryTrend:
    """Memory that grows, whether or not it is said by now."""

    whose: Whose
    slope: Slope
    """Bytes a step."""
    first: MemoryPoint
    """Where the fitted line begins: at the oldest block that it was seen over."""
    last: MemoryPoint
    """Where it ends: at the newest."""
    left: Exhaustion | None
    """When it will be full if this goes on; None where the limit is not known."""
    said: Finding | None
    """What the verdict says of it; None until it has shown three times in a row."""
    unit: Unit = "steps"
    """Of every number of steps here."""

    @property
    def steps(self) -> int:
        """That it was seen over."""
        return self.last.step - self.first.step


def unit_of(window: Window) -> Unit:
    """Of a run without a probe nobody sees the steps."""
    return "steps" if window.sampled is None else "s"


def line_of(grown: Growth) -> tuple[MemoryPoint, MemoryPoint]:
    """Both ends of the line through the blocks: their median slope, at their median height."""
    lows, slope = grown.blocks.lows, grown.slope.middle
    height = median(low.bytes - slope * low.step for low in lows)
    first, last = (
        MemoryPoint(low.step, low.t_ns, round(height + slope * low.step))
        for low in (lows[0], lows[-1])
    )
    return first, last
