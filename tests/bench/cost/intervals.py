"""What a probe costs, from pairs of the same steps without it and with it: the arithmetic.

The cost is the median over the pairs of their differences, with the interval in which 95 % of the
medians lie when the pairs are drawn anew (bootstrap, percentile method: Efron and Tibshirani, An
Introduction to the Bootstrap, chapter 13).
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from tests.measuring.spread import spread

PART: Final = 0.95
FEWEST: Final = 6
"""Values. The whole range of five holds the true median in 15 cases of 16, less than 95 %; that of
six in 31 of 32."""
NOT_RESOLVED: Final = "not resolved"


class Arm(str, Enum):
    """What a block of steps has."""

    IN = "in"
    OUT = "out"
    OUT_AGAIN = "out again"


IN, OUT, OUT_AGAIN = Arm

Mode = Literal["unwatched", "watched", "watched, left alone"]
"""Whether another process watches; "left alone": the probe stays in."""

Pair = Mapping[Arm, Mapping[str, float]]
"""What a step used in each arm, by figure (`counters`)."""


@dataclass(frozen=True)
class Interval:
    """A figure, and where 95 % of its like lie."""

    value: float
    low: float
    high: float
    count: int
    """Of values."""

    def text(self, unit: str, digits: int = 1, signed: bool = False) -> str:
        """ "+5.1 us (4.8 to 5.4)"; "not resolved" where it has no bounds."""
        if math.isinf(self.low):
            return NOT_RESOLVED
        value, low, high = (
            f"{round(one, digits) + 0.0:{'+' if signed else ''}.{digits}f}"
            for one in (self.value, self.low, self.high)
        )
        return f"{f'{value} {unit}'.strip()} ({low} to {high})"


@dataclass(frozen=True)
class Bar:
    """What a figure has to keep."""

    most: float
    within: float | None = None
    """What the interval may reach up to; None: no more than `most`."""


def interval(values: Sequence[float]) -> Interval:
    """The median of the values and its interval; one without bounds where they are too few."""
    value = statistics.median(values)
    low, high = (-math.inf, math.inf)
    if len(values) >= FEWEST:
        low, high = spread(values, statistics.median, PART)
    return Interval(value, low, high, len(values))


def differences(pairs: Sequence[Pair], arm: Arm, figure: str) -> list[float]:
    """Of an arm beyond "out"; none where the figure was not counted."""
    return [one[arm][figure] - one[OUT][figure] for one in pairs if figure in one[arm]]


def is_resolved(found: Interval, bar: Bar) -> bool:
    """Whether the interval shows anything: not both nothing at all and more than the bar."""
    return not found.low <= 0 <= bar.most < found.high


def judged(
    found: Interval, bar: Bar | None, unit: str, digits: int = 1, signed: bool = False
) -> tuple[str, bool | None]:
    """(the words of a row, whether the bar is kept): "not resolved" for an interval that shows
    nothing of its bar."""
    if bar is None or is_resolved(found, bar):
        return found.text(unit, digits, signed), None if bar is None else keeps(found, bar)
    return NOT_RESOLVED, None


def keeps(found: Interval, bar: Bar) -> bool | None:
    """True: with its interval. False: not even at the lower end. None: the interval holds the bar,
    so nobody knows."""
    if found.low > bar.most:
        return False
    within = bar.most if bar.within is None else bar.within
    return True if found.value <= bar.most and found.high <= within else None
