"""Does memory grow, and is it a leak? Two levels, both on block minima.

Growth is provisional: a cache that fills grows too. A leak is growth that went on at the same pace
over four times the span, and that no epoch and no other drop gave back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..statistics import Slope, mann_kendall, theil_sen
from ..thresholds import memory as limits
from ..window import MemoryPoint, RunEvent


@dataclass(frozen=True, slots=True)
class Blocks:
    """The newest part of a series."""

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
    few = points[-limits.SPACING_POINTS :]
    if len(few) < 2:
        return 1
    return max(1, -(-(few[-1].step - few[0].step) // (len(few) - 1)))


def in_blocks(points: Sequence[MemoryPoint], size: int, count: int) -> Blocks:
    """The newest `count` blocks of `size` steps. They end where steps were counted anew."""
    lows: list[MemoryPoint] = []
    newest = after = points[-1].step
    last = -1
    """The block of the newest of them."""
    for point in reversed(points):
        block = (newest - point.step) // size
        if point.step > after or block >= count:
            break
        after = point.step
        if block != last:
            lows.append(point)
            last = block
        elif point.bytes < lows[-1].bytes:
            lows[-1] = point
    return Blocks(size, tuple(reversed(lows)), last >= count - 2)


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
        if not begins or begins[-1] - begin >= limits.FLOOR_STEPS:
            begins.append(begin)
    if len(begins) < limits.EPOCH_FLOORS:
        return False
    floors = [_floor(points, begin, size) for begin in begins[: limits.EPOCH_FLOORS]]
    if floors[0] is None or floors[-1] is None:
        return False
    last, first = floors[0], floors[-1]
    expected = slope * (last.step - first.step)
    return last.bytes - first.bytes < limits.FLOOR_RISES * expected


def _floor(points: Sequence[MemoryPoint], begin: int, size: int) -> MemoryPoint | None:
    """The lowest point of the block that begins at a step."""
    inside = [point for point in points if begin <= point.step < begin + size]
    return min(inside, key=lambda point: point.bytes, default=None)


def _below_ceiling(points: Sequence[MemoryPoint], size: int) -> bool:
    """It fell before, and is not above the height that it fell from."""
    lows = in_blocks(points, size, limits.DROP_BLOCKS).bytes
    ceiling = height = floor = 0
    for low in lows:
        if height - low >= max(limits.MEMORY_LEAST_RISE, limits.DROP * (height - floor)):
            ceiling, height, floor = max(ceiling, height), low, low
        height = max(height, low)
        floor = min(floor, low) if floor else low
    return ceiling > 0 and lows[-1] < ceiling + limits.MEMORY_LEAST_RISE


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
        return _bends(self.blocks) >= limits.EVEN_BENDS


def growth(
    points: Sequence[MemoryPoint],
    epochs: Sequence[int] = (),
    least_size: int = limits.MEMORY_BLOCK_STEPS,
) -> Growth | None:
    """The trend of the newest points, oldest first; None without one.

    `epochs` are the steps at which a training loader began again; `least_size` is that of a block.
    """
    if len(points) < limits.LEAST_BLOCKS:
        return None
    size = max(least_size, spacing(points))
    blocks = _growing(points, size)
    if blocks is None and least_size == limits.MEMORY_BLOCK_STEPS:
        coarse = max(limits.COARSE_STEPS, limits.COARSE * size)
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
    spare = limits.SPARE_BLOCKS if size < 2 * spacing(points) else 0
    count = max(limits.LEAST_BLOCKS + spare, -(-limits.MEMORY_STEPS // size))
    blocks = in_blocks(points, size, count)
    if blocks.whole and _grows(blocks, limits.MEMORY_LEAST_RISE, limits.MEMORY_BENDS):
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
    if not limits.EARLY_STEPS <= known < max(limits.MEMORY_STEPS, apart * limits.LEAST_BLOCKS):
        return None
    blocks = in_blocks(points, max(apart, known // limits.MEMORY_BLOCKS + 1), limits.MEMORY_BLOCKS)
    grows = _grows(blocks, limits.EARLY_RISE, limits.EVEN_BENDS)
    return Blocks(blocks.size, blocks.lows, whole=False) if grows else None


def _grows(blocks: Blocks, least_rise: int, bends: float) -> bool:
    if len(blocks.lows) < limits.LEAST_BLOCKS or blocks.rise_bytes < least_rise:
        return False
    steps_up = [after - before for before, after in pairwise(blocks.bytes)]
    falls = limits.MEMORY_FALL * blocks.rise_bytes / len(steps_up)
    if sum(step > -falls for step in steps_up) < limits.MEMORY_RISING * len(steps_up):
        return False
    if max(steps_up) >= limits.MEMORY_JUMP * blocks.rise_bytes:
        return False
    return _bends(blocks) >= bends and mann_kendall(blocks.bytes) >= limits.MEMORY_Z


def _bends(blocks: Blocks) -> float:
    """What the second half rises, over what the first does."""
    values = blocks.bytes
    half = len(values) // 2
    first, second = values[half] - values[0], values[-1] - values[-1 - half]
    return second / max(1, first)


def _went_on(points: Sequence[MemoryPoint], size: int, slope: float) -> bool:
    """Growth at the same pace over four times the span."""
    count = max(limits.LEAK_LEAST_BLOCKS, -(-limits.LEAK_STEPS // size))
    blocks = in_blocks(points, size, count)
    if not blocks.whole or mann_kendall(blocks.bytes) < limits.LEAK_Z:
        return False
    if _bends(blocks) < limits.LEAK_BENDS:
        return False
    jump = max(after - before for before, after in pairwise(blocks.bytes))
    if blocks.rise_bytes <= 0 or jump >= limits.LEAK_JUMP * blocks.rise_bytes:
        return False
    whole = theil_sen(blocks.steps, blocks.bytes)
    low, high = limits.LEAK_EVEN
    return whole is not None and whole.middle > 0 and low <= slope / whole.middle <= high


@dataclass(frozen=True, slots=True)
class Onset:
    """Growth did not begin with the run."""

    step: int
    """Give or take a block."""
    beside: RunEvent | None
    """What happened there."""


def onset(
    points: Sequence[MemoryPoint], grown: Growth, moments: Sequence[RunEvent]
) -> Onset | None:
    """Where the pace of a series changed to that of the growth; None where it had it always.

    CUSUM over the rises of the blocks: it falls while they are below their mean, so that it is
    lowest where they change. A single jump counts as twice the growth's pace at most.
    """
    size = grown.blocks.size
    lows = in_blocks(points, size, limits.DROP_BLOCKS).lows
    most = limits.ONSET_MOST * grown.slope.middle
    paces = [
        max(-most, min(most, (after.bytes - before.bytes) / (after.step - before.step)))
        for before, after in pairwise(lows)
        if after.step > before.step
    ]
    if len(paces) != len(lows) - 1 or len(paces) < 2 * limits.ONSET_BLOCKS:
        return None
    mean = sum(paces) / len(paces)
    sums = list(accumulate(pace - mean for pace in paces))
    before = min(range(len(sums)), key=sums.__getitem__) + 1
    if before < limits.ONSET_BLOCKS or before > len(paces) - limits.ONSET_BLOCKS:
        return None
    after_pace = sum(paces[before:]) / (len(paces) - before)
    if sum(paces[:before]) / before >= limits.ONSET_BEFORE * after_pace:
        return None
    return Onset(lows[before].step, _nearest(lows[before].step, size, moments))


def _nearest(step: int, within: int, moments: Sequence[RunEvent]) -> RunEvent | None:
    near = [moment for moment in moments if abs(moment.step - step) <= within]
    return min(near, key=lambda moment: abs(moment.step - step), default=None)
