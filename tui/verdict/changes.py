"""Where a run last changed its pace: what lies before says nothing about the run now."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from statistics import median

from tui.verdict import policy


@dataclass(frozen=True, slots=True)
class Change:
    """The pace changed before the row `index`."""

    index: int
    before_ns: float
    after_ns: float
    """Median time of a step on either side."""
    what: str = ""
    """What is another now, in words; "" where nobody can say."""

    @property
    def factor(self) -> float:
        """Step time after over before."""
        return self.after_ns / self.before_ns


def last_change(paces_ns: Sequence[float]) -> Change | None:
    """The last clear change of level in the times of steps, oldest first.

    CUSUM on block medians of log time, split again to the right of each change that is found, then
    Greyhound's validation: at least 10 steps on both sides, at least 10 % of the median.
    """
    found: Change | None = None
    first = 0
    while (change := _one_change(paces_ns[first:])) is not None:
        found = Change(first + change.index, change.before_ns, change.after_ns)
        first = found.index
    return found


def _one_change(paces_ns: Sequence[float]) -> Change | None:
    block = policy.CHANGE_BLOCK
    count = len(paces_ns) // block
    if count * block < 2 * policy.CHANGE_LEAST_STEPS or min(paces_ns) <= 0:
        return None
    offset = len(paces_ns) - count * block  # whole blocks, counted from the newest step
    levels = [
        log(median(paces_ns[start : start + block]))
        for start in range(offset, len(paces_ns), block)
    ]
    split, height = _highest_cusum(levels)
    if height < policy.CHANGE_CUSUM:
        return None
    return _validated(paces_ns, offset + split * block)


def _highest_cusum(levels: Sequence[float]) -> tuple[int, float]:
    """The split that separates the levels best, and by how many standard deviations."""
    count = len(levels)
    mean = sum(levels) / count
    # Differences of neighbours: one change among them does not widen their median.
    steps = sorted(abs(after - before) for before, after in pairwise(levels))
    # A median of absolute differences is 0.954 sigma: 0.6745 times the square root of 2.
    sigma = max(policy.CHANGE_NOISE_FLOOR, median(steps) / 0.954)
    best, best_at, running = 0.0, 0, 0.0
    least = policy.CHANGE_LEAST_STEPS // policy.CHANGE_BLOCK
    for split in range(1, count):
        running += levels[split - 1] - mean
        if least <= split <= count - least:
            height = abs(running) * sqrt(count / (split * (count - split))) / sigma
            if height > best:
                best, best_at = height, split
    return best_at, best


def _validated(paces_ns: Sequence[float], near: int) -> Change | None:
    """The exact row within a block of `near`, if the two sides differ enough."""
    least, count = policy.CHANGE_LEAST_STEPS, len(paces_ns)
    before, after = median(paces_ns[:near]), median(paces_ns[near:])
    if abs(after / before - 1) < policy.CHANGE_LEAST:
        return None
    middle = (log(before) + log(after)) / 2
    low, high = max(least, near - policy.CHANGE_BLOCK), min(count - 1, near + policy.CHANGE_BLOCK)
    sides = [1 if (log(pace) > middle) == (after > before) else -1 for pace in paces_ns]
    # Each candidate is scored by the rows near it that lie on the right side.
    best = max(range(low, high + 1), key=lambda at: sum(sides[at:high]) - sum(sides[low:at]))
    # A cut is for ever: rather wait for the tenth step than keep some of the old pace.
    if best > count - least or sum(sides[best:]) < policy.CHANGE_CLEAR * sqrt(count - best):
        return None
    return Change(best, before, after)
