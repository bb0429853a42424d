"""Means of series whose neighbours are alike, and how sure a change between two of them is.

Step times are autocorrelated: a checkpoint every hundred steps, a cache that fills, a clock that
warms up. The standard error of n steps by the formula for independent values is too small then. So
a run is cut into consecutive batches, and their spread is what counts (batch means; 10 to 30
batches lose little: Schmeiser, "Batch size effects in the analysis of simulation output",
Operations Research 30, 1982). Where the series of a run settles is found by MSER-5 (White, "An
effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997).

Batch means take the batches for independent, which noise that lasts longer than a batch is not: a
neighbour on the host comes and goes in seconds, a clock settles in half a minute. Of one run alone
the error therefore holds such noise as well, as far as the run may have it (`_least_sure`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, exp, expm1, hypot, inf, log, pi, prod, sqrt, tan
from statistics import NormalDist, fmean, linear_regression, stdev
from typing import Final

BATCHES: Final = 20
FEWEST_BATCHES: Final = 5
CONFIDENCE: Final = 0.95
RUN_TO_RUN: Final = 0.006
"""Standard deviation of the mean step of equal runs, as part of it: what no single run can show.
Of 87 pairs of equal runs on an H200 (tests/recordings/suite, bare and untouched) half differ by
0.56 % at most, which is a deviation of 0.0058 in each. Loops that the host bounds differ by more,
up to 30 %: several recordings a side measure it."""
MSER_GROUP: Final = 5
APART: Final = 2.0
"""Times the range of what is left (of groups of steps): so far from it lies a warming up. Of runs
of 15 s whose noise lasts 30 s 3 % have such a beginning by chance, and 20 % at half of it."""
LASTS_S: Final = 30.0
"""Noise of one run that fades to 1/e within so long is in its error."""
FADES_S: Final = (1.0, 3.0, 10.0, LASTS_S, 1.5 * LASTS_S)
"""How fast what lasts may fade. The last is a margin: what is found is an estimate."""
MIXTURES: Final = (0.0, 0.5, 0.75, 0.9, 0.97, 0.99, 1.0)
"""Parts of the noise that last; the rest is new in each batch."""
DOUBT: Final = 0.6
"""Logarithm of the likelihood by which a mixture may be worse than the likeliest and still count.
Of equal runs about 5 % at most are called a change so, whatever their noise and length, and at half
of it 10 % (tests/bench/compare_noise.py)."""
LEAST_FADING: Final = 1e-5
"""Of lasting noise within a batch: less is lost in rounding."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error. `freedom`: degrees of freedom behind the error."""

    mean: float
    error: float
    freedom: float


@dataclass(frozen=True, slots=True)
class Change:
    """From one mean to another, in their unit, with its interval; relative to the first where that
    is not 0."""

    before: float
    after: float
    low: float
    """Of `after - before`."""
    high: float

    @property
    def relative(self) -> float | None:
        """0.05: five percent more."""
        return (self.after - self.before) / self.before if self.before > 0 else None

    @property
    def relative_interval(self) -> tuple[float, float] | None:
        """The interval as parts of the first."""
        return (self.low / self.before, self.high / self.before) if self.before > 0 else None

    @property
    def is_found(self) -> bool:
        """No change at all lies outside the interval."""
        return self.low > 0 or self.high < 0


def settled_from(values: Sequence[float]) -> int:
    """Index from which a series has settled, at most half of it (MSER-5): where the standard error
    of what is left is least. 0 where what comes before is like the rest: a part that is calmer by
    chance is no more of the run."""
    groups = len(values) // MSER_GROUP
    if groups < 4:
        return 0
    means = [sum(values[MSER_GROUP * at : MSER_GROUP * (at + 1)]) / MSER_GROUP for at in
             range(groups)]  # fmt: skip
    best, best_at = inf, 0
    total = squares = 0.0
    for at in range(groups - 1, -1, -1):
        total += means[at]
        squares += means[at] ** 2
        left = groups - at
        if at > groups // 2 or left < 2:
            continue
        spread = max(0.0, squares - total * total / left) / (left * left)
        if spread <= best:
            best, best_at = spread, at
    before, rest = means[:best_at], sorted(means[best_at:])
    seldom = len(rest) // 10  # a pause, as of an evaluation
    spread = rest[-1 - seldom] - rest[seldom]
    if not before or abs(fmean(before) - fmean(rest)) <= APART * spread:
        return 0
    return best_at * MSER_GROUP


def ratio_of(
    parts: Sequence[float],
    wholes: Sequence[float],
    most: int = BATCHES,
    seconds: float | None = None,
) -> Estimate | None:
    """Sum of `parts` over sum of `wholes`, row by row in order of time, with the error by means of
    at most so many batches: var = sum((x_b - r y_b)^2) / (m - 1) / m / mean(y)^2. With `seconds`,
    which the rows took together, the error holds noise that outlasts a batch. None where fewer than
    FEWEST_BATCHES can be had."""
    rows = len(wholes)
    batches = min(most, rows)
    whole = sum(wholes)
    if batches < FEWEST_BATCHES or whole <= 0:
        return None
    mean = sum(parts) / whole
    ends = [batch * rows // batches for batch in range(batches + 1)]
    apart = [
        (sum(parts[first:end]) - mean * sum(wholes[first:end])) * batches / whole
        for first, end in pairwise(ends)
    ]
    if seconds is None:
        variance = sum(one * one for one in apart) / (batches - 1) / batches
    else:
        variance = _least_sure(apart, seconds)
    return Estimate(mean, sqrt(variance), batches - 1)


def _least_sure(apart: Sequence[float], seconds: float) -> float:
    """Variance of the mean of batches that lie so far from it, where noise may last.

    What outlasts the run moves all its batches alike, and shows in them as a slow wave at most. So
    the noise is taken for a mixture: a part is new in each batch, the rest fades. Of the mixtures
    that the batches do not speak against, the one counts that leaves the mean least sure. Waves of
    different length are nearly independent of each other (cosine transform; Müller, "HAC
    corrections for strongly autocorrelated time series", Journal of Business and Economic
    Statistics 32, 2014).
    """
    batches, most = len(apart), max(map(abs, apart)) or 1.0
    waves = []
    for wave in range(1, batches):
        turn = pi * wave / batches
        height = sum(one / most * cos(turn * (at + 0.5)) for at, one in enumerate(apart))
        waves.append(2 * height * height / batches)
    if not any(waves):
        return 0.0
    found = []
    for fades_s in FADES_S:
        lasting, of_mean = _fading(batches, max(seconds / batches / fades_s, LEAST_FADING))
        for part in MIXTURES:
            spectrum = [1 - part + part * one for one in lasting]
            level = fmean(wave / one for wave, one in zip(waves, spectrum, strict=True))
            likelihood = -0.5 * (len(waves) * log(level) + log(prod(spectrum)))
            found.append((likelihood, level * (1 - part + part * of_mean) / batches))
    likeliest = max(likelihood for likelihood, _ in found)
    counting = [variance for likelihood, variance in found if not likelihood < likeliest - DOUBT]
    return max(counting) * most * most


def _fading(batches: int, fades: float) -> tuple[list[float], float]:
    """Of noise that fades to exp(-fades) within a batch: the variance of each wave of the batches'
    means, from the longest on, and so many times that of their mean as there are batches."""
    kept, spread = exp(-fades), -expm1(-fades) / fades
    alone, beside = 2 * (1 - spread) / fades, spread**2
    lasting = []
    for wave in range(1, batches):
        sway = cos(pi * wave / batches)
        lasting.append(alone + 2 * beside * (sway - kept) / (1 - 2 * kept * sway + kept**2))
    others = sum((1 - lag / batches) * kept ** (lag - 1) for lag in range(1, batches))
    return lasting, alone + 2 * beside * others


def most_of(most: float, values: Sequence[float]) -> Estimate | None:
    """The most of a run, with the error by what comes near it, in order of time. None where fewer
    than FEWEST_BATCHES can be had.

    The most of other draws of the same kind is another, and more of them do not make it sure: the
    largest of a stretch spreads about as much as the largest of all (Gumbel's distribution keeps
    its width). So its deviation is that of the largest of each batch, as parts of their mean,
    beside a straight line through them: growth leaves no doubt of how much there was.
    """
    batches = min(BATCHES, len(values))
    if batches < FEWEST_BATCHES:
        return None
    ends = [batch * len(values) // batches for batch in range(batches + 1)]
    largest = [max(values[first:end]) for first, end in pairwise(ends)]
    mean, line = fmean(largest), linear_regression(range(batches), largest)
    beside = [one - line.slope * at for at, one in enumerate(largest)]
    return Estimate(most, most * stdev(beside) / mean if mean > 0 else 0.0, batches - 1)


def of_runs(estimates: Sequence[Estimate]) -> Estimate:
    """Of several runs of one side: the mean of their means, with the error by their spread, and no
    less than what the runs themselves leave open. Of one run: with the spread from run to run that
    is known from elsewhere (RUN_TO_RUN)."""
    runs = len(estimates)
    mean = sum(one.mean for one in estimates) / runs
    if runs == 1:
        only = estimates[0]
        error = hypot(only.error, RUN_TO_RUN * only.mean)
        return Estimate(mean, error, _freedom([(only.error, only.freedom)], error))
    spread = sqrt(sum((one.mean - mean) ** 2 for one in estimates) / (runs - 1) / runs)
    within = sqrt(sum(one.error**2 for one in estimates)) / runs
    return Estimate(mean, max(spread, within), runs - 1)


def change(before: Estimate, after: Estimate, confidence: float = CONFIDENCE) -> Change:
    """With its two-sided interval (Welch)."""
    error = hypot(before.error, after.error)
    parts = [(one.error, one.freedom) for one in (before, after)]
    half = student(0.5 + confidence / 2, _freedom(parts, error)) * error
    moved = after.mean - before.mean
    return Change(before.mean, after.mean, moved - half, moved + half)


def _freedom(parts: Sequence[tuple[float, float]], error: float) -> float:
    """Welch and Satterthwaite's; an error without a part (RUN_TO_RUN) is known."""
    spent = sum(one**4 / freedom for one, freedom in parts if freedom < inf)
    return error**4 / spent if spent > 0 else inf


def student(part: float, freedom: float) -> float:
    """Student's t that `part` of the distribution lies below. Exact for one and two degrees of
    freedom; else by Abramowitz and Stegun 26.7.5, within 1 % from three on."""
    if freedom < 1.5:
        return tan(pi * (part - 0.5))
    if freedom < 2.5:
        return (2 * part - 1) / sqrt(2 * part * (1 - part))
    z = NormalDist().inv_cdf(part)
    if freedom == inf:
        return z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
