"""Steps after a window beside those before it: a ratio of medians with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

FEWEST: Final = 8
"""Steps on each side, for an interval."""
_Z: Final = 2.24
"""Two-sided 97.5 % of each median: together at least 95 % of their ratio (Bonferroni)."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Steps before and after, ns; the ratio's interval holds at least 95 %."""

    before_ns: float
    after_ns: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """After over before: 1.0 is as fast as before."""
        return self.after_ns / self.before_ns


def pace_of(before_ns: Sequence[int], after_ns: Sequence[int]) -> Pace | None:
    """None where there are too few. The interval is that of order statistics, which asks for no
    distribution, and takes steps to be independent of each other."""
    if min(len(before_ns), len(after_ns)) < FEWEST:
        return None
    before_low, before_high = _interval(before_ns)
    after_low, after_high = _interval(after_ns)
    return Pace(
        median(before_ns),
        median(after_ns),
        after_low / before_high,
        after_high / before_low,
    )


def _interval(values: Sequence[int]) -> tuple[int, int]:
    ranked = sorted(values)
    half = _Z * math.sqrt(len(ranked)) / 2
    low = max(0, math.floor(len(ranked) / 2 - half))
    high = min(len(ranked) - 1, math.ceil(len(ranked) / 2 + half))
    return ranked[low], ranked[high]
