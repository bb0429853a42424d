"""A memory series in blocks of steps, each told by its lowest point.

Between two steps nothing transient is alive, so the minimum of a block is what is left when the
peaks are taken away. Points come once a second whatever a step takes: one in 500 steps or five in
each. So blocks are cut by steps, never by points, and are never shorter than the points lie apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tui.verdict import policy
from tui.verdict.window import MemoryPoint


@dataclass(frozen=True, slots=True)
class Blocks:
    """The newest stretch of a series."""

    size: int
    """Steps of a block."""
    lows: tuple[MemoryPoint, ...]
    """Lowest point of each block that has any, oldest first."""
    whole: bool
    """They reach back over all the steps that were asked for, but for the oldest block."""

    @property
    def bytes(self) -> list[int]:
        """What was held, oldest first."""
        return [low.bytes for low in self.lows]

    @property
    def steps(self) -> list[int]:
        """When, oldest first."""
        return [low.step for low in self.lows]

    @property
    def rise_bytes(self) -> int:
        """From the first block to the last."""
        return self.lows[-1].bytes - self.lows[0].bytes


def spacing(points: Sequence[MemoryPoint]) -> int:
    """Steps from one of the newest points to the next, rounded up."""
    few = points[-policy.SPACING_POINTS :]
    if len(few) < 2:
        return 1
    return max(1, -(-(few[-1].step - few[0].step) // (len(few) - 1)))


def in_blocks(points: Sequence[MemoryPoint], size: int, count: int) -> Blocks:
    """The newest `count` blocks of `size` steps. They end where steps were counted anew."""
    lows: dict[int, MemoryPoint] = {}
    newest = after = points[-1].step
    for point in reversed(points):
        block = (newest - point.step) // size
        if point.step > after or block >= count:
            break
        after = point.step
        low = lows.get(block)
        if low is None or point.bytes < low.bytes:
            lows[block] = point
    return Blocks(size, tuple(reversed(lows.values())), max(lows) >= count - 2)
