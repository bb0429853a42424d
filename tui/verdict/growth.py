"""Does memory grow, and is it a leak? Two levels, both on block minima.

Growth is provisional: a cache that fills grows too. A leak is growth that went on at the same pace
over four times the span, and that no epoch and no other drop gave back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tui.verdict import policy
from tui.verdict.blocks import Blocks, in_blocks, spacing
from tui.verdict.given_back import gives_back
from tui.verdict.trend import Slope, mann_kendall, theil_sen
from tui.verdict.window import MemoryPoint


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory that grows."""

    slope: Slope
    """Bytes a step."""
    blocks: Blocks
    """What it was seen over."""
    leak: bool
    """It went on at the same pace over four times the span."""
    gives_back: bool
    """It did grow before, and fell again: no leak, however steady it looks."""

    @property
    def even(self) -> bool:
        """The second half rises about as fast as the first."""
        return _bends(self.blocks) >= policy.EVEN_BENDS


def growth(
    points: Sequence[MemoryPoint],
    epochs: Sequence[int] = (),
    least_size: int = policy.MEMORY_BLOCK_STEPS,
) -> Growth | None:
    """The trend of the newest points, oldest first; None without one.

    `epochs` are the steps at which a training loader began again; `least_size` is that of a block.
    """
    if len(points) < policy.LEAST_BLOCKS:
        return None
    size = max(least_size, spacing(points))
    blocks = _growing(points, size)
    if blocks is None and least_size == policy.MEMORY_BLOCK_STEPS:
        coarse = max(policy.COARSE_STEPS, policy.COARSE * size)
        blocks = _growing(points, coarse) or _early(points)
    slope = theil_sen(blocks.steps, blocks.bytes) if blocks else None
    if blocks is None or slope is None or slope.middle <= 0:
        return None
    back = gives_back(points, size, slope.middle, epochs)
    leak = blocks.whole and not back and _went_on(points, size, slope.middle)
    return Growth(slope, blocks, leak, back)


def _growing(points: Sequence[MemoryPoint], size: int) -> Blocks | None:
    """The newest blocks of a size, where they grow."""
    # Blocks as long as points lie apart have now and then none: points come by time.
    spare = policy.SPARE_BLOCKS if size < 2 * spacing(points) else 0
    count = max(policy.LEAST_BLOCKS + spare, -(-policy.MEMORY_STEPS // size))
    blocks = in_blocks(points, size, count)
    if blocks.whole and _grows(blocks, policy.MEMORY_LEAST_RISE, policy.MEMORY_BENDS):
        return blocks
    return None


def _early(points: Sequence[MemoryPoint]) -> Blocks | None:
    """As many blocks as there can be, where they grow, while there are not yet enough of full
    size."""
    newest, oldest = points[-1].step, points[0].step
    for one, other in pairwise(points):
        if other.step < one.step:
            oldest = other.step
    known, apart = newest - oldest, spacing(points)
    if not policy.EARLY_STEPS <= known < max(policy.MEMORY_STEPS, apart * policy.LEAST_BLOCKS):
        return None
    blocks = in_blocks(points, max(apart, known // policy.MEMORY_BLOCKS + 1), policy.MEMORY_BLOCKS)
    grows = _grows(blocks, policy.EARLY_RISE, policy.EVEN_BENDS)
    return Blocks(blocks.size, blocks.lows, whole=False) if grows else None


def _grows(blocks: Blocks, least_rise: int, bends: float) -> bool:
    if len(blocks.lows) < policy.LEAST_BLOCKS or blocks.rise_bytes < least_rise:
        return False
    steps_up = [after - before for before, after in pairwise(blocks.bytes)]
    falls = policy.MEMORY_FALL * blocks.rise_bytes / len(steps_up)
    if sum(step > -falls for step in steps_up) < policy.MEMORY_RISING * len(steps_up):
        return False
    if max(steps_up) >= policy.MEMORY_JUMP * blocks.rise_bytes:
        return False
    return _bends(blocks) >= bends and mann_kendall(blocks.bytes) >= policy.MEMORY_Z


def _bends(blocks: Blocks) -> float:
    """What the second half rises, over what the first does."""
    values = blocks.bytes
    half = len(values) // 2
    first, second = values[half] - values[0], values[-1] - values[-1 - half]
    return second / max(1, first)


def _went_on(points: Sequence[MemoryPoint], size: int, slope: float) -> bool:
    """Growth at the same pace over four times the span."""
    count = max(policy.LEAK_LEAST_BLOCKS, -(-policy.LEAK_STEPS // size))
    blocks = in_blocks(points, size, count)
    if not blocks.whole or mann_kendall(blocks.bytes) < policy.LEAK_Z:
        return False
    if _bends(blocks) < policy.LEAK_BENDS:
        return False
    jump = max(after - before for before, after in pairwise(blocks.bytes))
    if blocks.rise_bytes <= 0 or jump >= policy.LEAK_JUMP * blocks.rise_bytes:
        return False
    whole = theil_sen(blocks.steps, blocks.bytes)
    low, high = policy.LEAK_EVEN
    return whole is not None and whole.middle > 0 and low <= slope / whole.middle <= high
