"""Does memory grow, and is it a leak? Trend tests on block minima (diagnosis 4).

Between two steps nothing transient is alive, and host memory is looked at once a second wherever
the step is, so the minimum of a block is what is left when the peaks are taken away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import sqrt
from statistics import median

from tui.verdict import policy
from tui.verdict.window import MemoryPoint


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory that grows."""

    slope: float
    """Bytes a step (Theil-Sen)."""
    slope_low: float
    slope_high: float
    """Its 95 % interval (Sen)."""
    first: MemoryPoint
    last: MemoryPoint
    """Ends of the trend: minima of its first and last block."""
    leak: bool
    """It went on at the same pace over four times the span."""


def growth(points: Sequence[MemoryPoint]) -> Growth | None:
    """The trend of the newest points, oldest first; None without one.

    12 blocks of 25 steps; before there are as many, 8 or more smaller ones that rise by 64 MiB.
    """
    size = _block_points(points)
    if size and len(points) >= size * policy.MEMORY_BLOCKS:
        minima = _minima(points[-size * policy.MEMORY_BLOCKS :], size)
        if not _grows(minima, policy.MEMORY_LEAST_RISE, policy.MEMORY_BENDS):
            return None
    else:
        minima = _early(points)
        if not _grows(minima, policy.EARLY_RISE, policy.EARLY_BENDS):
            return None
    slope, low, high = theil_sen(minima)
    leak = bool(size) and _confirmed(points, size, slope)
    return Growth(slope, low, high, minima[0], minima[-1], leak)


def _block_points(points: Sequence[MemoryPoint]) -> int:
    """Points that cover 25 steps; 0 when that is not known."""
    if len(points) < 2:
        return 0
    steps = points[-1].step - points[0].step
    if steps <= 0:
        return 0
    return max(1, -(-policy.MEMORY_BLOCK_STEPS * (len(points) - 1) // steps))


def _early(points: Sequence[MemoryPoint]) -> list[MemoryPoint]:
    """Minima of as many blocks as there can be; empty while it is too early for a word."""
    if len(points) < policy.EARLY_POINTS:
        return []
    if points[-1].step - points[0].step < policy.EARLY_STEPS:
        return []
    size = max(1, len(points) // policy.MEMORY_BLOCKS)
    return _minima(points[len(points) % size :], size)


def _minima(points: Sequence[MemoryPoint], size: int) -> list[MemoryPoint]:
    return [
        min(points[first : first + size], key=lambda point: point.bytes)
        for first in range(0, len(points), size)
    ]


def _grows(minima: Sequence[MemoryPoint], least_rise: int, bends: float) -> bool:
    if len(minima) < policy.EARLY_POINTS:
        return False
    values = [point.bytes for point in minima]
    rise = values[-1] - values[0]
    steps_up = [after - before for before, after in pairwise(values)]
    if rise < least_rise or mann_kendall(values) < policy.MEMORY_Z:
        return False
    if sum(step > 0 for step in steps_up) < policy.MEMORY_RISING * len(steps_up):
        return False
    if max(steps_up) >= policy.MEMORY_JUMP * rise:
        return False
    half = len(values) // 2
    first, second = values[half] - values[0], values[-1] - values[-1 - half]
    return second >= bends * first


def _confirmed(points: Sequence[MemoryPoint], size: int, slope: float) -> bool:
    """Growth at the same pace over four times the span."""
    count = size * policy.MEMORY_BLOCKS * policy.LEAK_SPAN
    if len(points) < count:
        return False
    minima = _minima(points[-count:], size)
    values = [point.bytes for point in minima]
    rise = values[-1] - values[0]
    if rise <= 0 or mann_kendall(values) < policy.LEAK_Z:
        return False
    if max(after - before for before, after in pairwise(values)) >= policy.LEAK_JUMP * rise:
        return False
    whole, _, _ = theil_sen(minima)
    low, high = policy.LEAK_EVEN
    return whole > 0 and low <= slope / whole <= high


def mann_kendall(values: Sequence[float]) -> float:
    """z of the Mann-Kendall trend test, corrected for continuity (no correction for ties)."""
    count = len(values)
    if count < 3:
        return 0.0
    s = sum((after > before) - (after < before) for before, after in combinations(values, 2))
    sigma = sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return (s - 1) / sigma if s > 0 else (s + 1) / sigma if s < 0 else 0.0


def theil_sen(points: Sequence[MemoryPoint]) -> tuple[float, float, float]:
    """Median of the pairwise slopes, bytes a step, and Sen's 95 % interval."""
    slopes = sorted(
        (after.bytes - before.bytes) / (after.step - before.step)
        for before, after in combinations(points, 2)
        if after.step > before.step
    )
    if not slopes:
        return 0.0, 0.0, 0.0
    count = len(points)
    reach = 1.96 * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, int((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, int((len(slopes) + reach) / 2))
    return median(slopes), slopes[low], slopes[high]
