"""The share of the time that a cause holds, with its interval."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from itertools import combinations
from math import comb, erf, hypot, sqrt
from statistics import median
from typing import Final

from .thresholds import hysteresis as limits

_NOTHING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Share:
    """A ratio of sums and its 90 % interval, each 0 to 1."""

    mean: float
    low: float
    high: float


def share_of(parts_ns: Sequence[int], walls_ns: Sequence[int]) -> Share:
    """Sum of `parts_ns` over sum of `walls_ns`, row by row, oldest first.

    Ratio of sums, not mean of ratios: a short step must not weigh as much as a long one. The
    interval comes from the ratio estimator on 10 consecutive batches:
    var = sum((x_b - r y_b)^2) / (m - 1) / m / mean(y)^2.

    One row that holds more than half of it, and more than twice as much as any other, is an event
    and no share: a pause of a minute says nothing of the next hundred steps. A second one does.
    """
    share = _ratio(parts_ns, walls_ns)
    if share.mean < limits.CONTRIBUTOR:
        return share
    largest, second = (*nlargest(2, parts_ns), 0)[:2]
    if 2 * largest <= sum(parts_ns) or largest <= 2 * second:
        return share
    at = parts_ns.index(largest)
    rest = [[*values[:at], *values[at + 1 :]] for values in (parts_ns, walls_ns)]
    without = _ratio(*rest)
    return without if without.mean < limits.CONTRIBUTOR else share


def _ratio(parts_ns: Sequence[int], walls_ns: Sequence[int]) -> Share:
    whole = sum(walls_ns)
    if whole <= 0:
        return Share(0.0, 0.0, 1.0)
    mean = min(1.0, max(0.0, sum(parts_ns) / whole))
    rows = len(walls_ns)
    batches = min(limits.BATCHES, rows)
    if batches < 2:
        return Share(mean, 0.0, 1.0)
    squares = 0.0
    for batch in range(batches):
        first, end = batch * rows // batches, (batch + 1) * rows // batches
        squares += (sum(parts_ns[first:end]) - mean * sum(walls_ns[first:end])) ** 2
    error = sqrt(squares / (batches - 1) / batches) / (whole / batches)
    half = limits.Z90_FEW[batches - 2] * error
    return Share(mean, max(0.0, mean - half), min(1.0, mean + half))


def without_rows(mean: float) -> Share:
    """A share that counters and samples give as a whole, with no rows to take an interval from:
    5 points to either side, the width at which a cause may still be chance."""
    spread = min(mean, limits.ENTER_LOW)
    return Share(mean, mean - spread, min(1.0, mean + spread))


def of_samples(part: float, samples: float) -> Share:
    """A part of so many samples with Wilson's 90 % interval. Two of 19 are 4 to 26 %: a normal
    interval would reach below nothing there. No sample leaves everything open."""
    if samples <= 0:
        return Share(part, 0.0, 1.0)
    part = min(1.0, max(0.0, part))
    spread = limits.Z90_MANY**2 / samples
    middle = (part + spread / 2) / (1 + spread)
    half = limits.Z90_MANY / (1 + spread) * sqrt(part * (1 - part) / samples + spread / 4 / samples)
    return Share(part, max(0.0, min(part, middle - half)), min(1.0, max(part, middle + half)))


def of_moments(held: int, taken: int) -> Share:
    """The part of the samples of `taken` that found what is looked for, at the moments `held`, with
    Wilson's 90 % interval of as many as they are worth (`independent`)."""
    part = held.bit_count() / taken.bit_count() if taken else 0.0
    return of_samples(part, independent(held, taken))


def independent(held: int, taken: int) -> float:
    """How many independent samples those of `taken` are worth, of which those of `held` found what
    is looked for: within one long pause each sample repeats the one before it.

    Both are bits of moments, the oldest lowest; a moment without a sample parts two stretches. Of a
    chain with two states whose neighbours correlate by r the mean of m samples in a row is worth
    m / (1 + 2 sum_k (1 - k / m) r^k) of them, one at least; stretches are independent."""
    count, found = taken.bit_count(), held.bit_count()
    mean = found / count if count else 0.0
    pairs = (taken & taken >> 1).bit_count()
    if not pairs or not 0.0 < mean < 1.0:
        return float(count)
    both = (held & held >> 1).bit_count() / pairs
    alike = min(1.0, max(0.0, (both - mean * mean) / (mean * (1.0 - mean))))
    lengths = stretches(taken)
    return count**2 / sum(length * _repeated(length, alike) for length in lengths)


def _repeated(length: int, alike: float) -> float:
    """How many samples in a row are worth one."""
    if alike > 1.0 - 1e-6:
        return float(length)
    apart = 1.0 - alike
    ends = 2.0 * alike * (1.0 - alike**length) / (length * apart**2)
    return max(1.0, (1.0 + alike) / apart - ends)


@lru_cache(maxsize=64)
def stretches(taken: int) -> tuple[int, ...]:
    """How many samples lie in each row of them without a gap."""
    return tuple(len(one) for one in f"{taken:b}".split("0") if one)


def at_most(share: Share, most: float) -> Share:
    """The same where no more than `most` of the time can count, as what a GPU was idle for."""
    return Share(*(min(most, part) for part in (share.mean, share.low, share.high)))


def added(one: Share, other: Share) -> Share:
    """Two parts that hold nothing in common."""
    parts = one.mean + other.mean, one.low + other.low, one.high + other.high
    return Share(*(min(1.0, part) for part in parts))


def lesser(one: Share, other: Share) -> Share:
    """Where both bound the same part."""
    return Share(min(one.mean, other.mean), min(one.low, other.low), min(one.high, other.high))


def beyond(share: Share, part: float) -> Share:
    """What of it is more than `part`, which something else explains."""
    return Share(*(max(0.0, one - part) for one in (share.mean, share.low, share.high)))


def within_one(part: float) -> float:
    """A part that was read elsewhere, 0 to 1; 0 of what is no number."""
    return min(1.0, part) if part > 0 else 0.0


def times(share: Share, factor: float) -> Share:
    """A part of it, 0 to 1."""
    return Share(share.mean * factor, share.low * factor, share.high * factor)


def product(one: Share, other: Share) -> Share:
    """A part of a part, whose errors are independent: relative ones add as squares."""
    mean = one.mean * other.mean
    if mean <= _NOTHING:
        return Share(0.0, 0.0, one.high * other.high)
    below = hypot(1.0 - one.low / one.mean, 1.0 - other.low / other.mean)
    above = hypot(one.high / one.mean - 1.0, other.high / other.mean - 1.0)
    return Share(mean, max(0.0, mean * (1.0 - below)), min(1.0, mean * (1.0 + above)))


def error_of(mean: float, low: float, high: float) -> float:
    """The standard error behind an interval; the wider side, as one may be cut at 0 or 1."""
    return max(mean - low, high - mean) / limits.Z90


def probability_above(value: float, error: float, limit: float, limit_error: float = 0.0) -> float:
    """That the true value lies above the true limit: the normal form of a bootstrap.

    The shares compared are means over 10 batches; resampling those and this formula differ by less
    than the 80 % line needs, and this one has no randomness to seed.
    """
    spread = sqrt(error * error + limit_error * limit_error)
    if spread < _NOTHING:
        return 1.0 if value > limit else 0.5 if value == limit else 0.0
    return 0.5 * (1.0 + erf((value - limit) / spread / sqrt(2.0)))


def binomial_tail(times: int, of: int, chance: float) -> float:
    """That what has this chance happens at least so many times of a few hundred."""
    return sum(comb(of, k) * chance**k * (1 - chance) ** (of - k) for k in range(times, of + 1))


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
    reach = limits.Z95 * _spread(values)
    low = max(0, int((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, int((len(slopes) + reach) / 2))
    return Slope(median(slopes), slopes[low], slopes[high])


def _spread(values: Sequence[float]) -> float:
    """Standard deviation of Mann-Kendall's S where there is no trend; equal values lessen it."""
    count = len(values)
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(values).values() if t > 1)
    return sqrt(max(0, count * (count - 1) * (2 * count + 5) - ties) / 18)
