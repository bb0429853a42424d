"""Memory that grows and is given back: lists cleared each epoch, caches that are emptied.

Between two drops it looks like a leak in every respect. What tells it is what came after the drops:
a leak is left standing at the floor behind each, and goes beyond the height before it.
"""

from collections.abc import Sequence

from tui.verdict import policy
from tui.verdict.blocks import in_blocks
from tui.verdict.window import MemoryPoint


def gives_back(
    points: Sequence[MemoryPoint], size: int, slope: float, epochs: Sequence[int]
) -> bool:
    """Whether growth of `slope` bytes a step was given back before: at epochs, or at drops that the
    series shows by itself, in blocks of `size` steps."""
    return _floors_stay(points, size, slope, epochs) or _below_ceiling(points, size)


def _floors_stay(
    points: Sequence[MemoryPoint], size: int, slope: float, epochs: Sequence[int]
) -> bool:
    """The floors behind two epochs do not rise as the growth between them would have it.

    The first floor of all is that of the epoch that the series begins in.
    """
    begins: list[int] = []
    for begin in (*reversed(epochs), points[0].step):
        if not begins or begins[-1] - begin >= policy.FLOOR_STEPS:
            begins.append(begin)
    floors = [_floor(points, begin, size) for begin in begins[: policy.EPOCH_FLOORS]]
    if len(floors) < policy.EPOCH_FLOORS or floors[0] is None or floors[-1] is None:
        return False
    last, first = floors[0], floors[-1]
    expected = slope * (last.step - first.step)
    return last.bytes - first.bytes < policy.FLOOR_RISES * expected


def _floor(points: Sequence[MemoryPoint], begin: int, size: int) -> MemoryPoint | None:
    """The lowest point of the block that begins at a step."""
    inside = [point for point in points if begin <= point.step < begin + size]
    return min(inside, key=lambda point: point.bytes, default=None)


def _below_ceiling(points: Sequence[MemoryPoint], size: int) -> bool:
    """It fell before, and is not above the height that it fell from."""
    lows = in_blocks(points, size, policy.DROP_BLOCKS).bytes
    ceiling = height = floor = 0
    for low in lows:
        if height - low >= max(policy.MEMORY_LEAST_RISE, policy.DROP * (height - floor)):
            ceiling, height, floor = max(ceiling, height), low, low
        height = max(height, low)
        floor = min(floor, low) if floor else low
    return ceiling > 0 and lows[-1] < ceiling + policy.MEMORY_LEAST_RISE
