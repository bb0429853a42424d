"""Trend tests that no outlier moves: Mann-Kendall, and Theil-Sen with Sen's interval."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import median

from tui.verdict import policy


@dataclass(frozen=True, slots=True)
class Slope:
    """Of a series, in its unit a step, with its 95 % interval."""

    middle: float
    low: float
    high: float


def mann_kendall(values: Sequence[float]) -> float:
    """z of the Mann-Kendall trend test, corrected for ties and for continuity."""
    s = sum((after > before) - (after < before) for before, after in combinations(values, 2))
    sigma = _spread(values)
    if sigma == 0.0:
        return 0.0
    return (s - 1) / sigma if s > 0 else (s + 1) / sigma if s < 0 else 0.0


def theil_sen(steps: Sequence[int], values: Sequence[float]) -> Slope | None:
    """Median of the pairwise slopes, and Sen's interval; None where no two steps differ."""
    slopes = sorted(
        (values[b] - values[a]) / (steps[b] - steps[a])
        for a, b in combinations(range(len(steps)), 2)
        if steps[b] > steps[a]
    )
    if not slopes:
        return None
    reach = policy.Z95 * _spread(values)
    low = max(0, int((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, int((len(slopes) + reach) / 2))
    return Slope(median(slopes), slopes[low], slopes[high])


def _spread(values: Sequence[float]) -> float:
    """Standard deviation of Mann-Kendall's S where there is no trend; equal values lessen it."""
    count = len(values)
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(values).values() if t > 1)
    return sqrt(max(0, count * (count - 1) * (2 * count + 5) - ties) / 18)
