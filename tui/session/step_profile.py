"""The scope: samples of the GPU folded on the starts of the steps, as an oscilloscope triggers.

A sample covers 100 ms. Where the steps are shorter than a few of those no picture over time shows
what happens within one; folded, many samples show it together, because each covers other parts of
a step. What they cannot resolve is not shown: there is no picture where the steps are not alike, or
keep time with the samples, or where one part of the samples does not show the others.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import cos, floor, hypot, pi, sin, sqrt
from operator import mul
from statistics import median
from typing import Final, NamedTuple, TypeVar

from ..model.snapshot import Scope
from ..steps import GpuStep

# Least squares: what one period looks like, from means over many.

LOW, HIGH = 0.0, 100.0
"""Percent."""
SWEEPS: Final = 30
SETTLED: Final = 0.1
"""Points: a sweep that moves no part by more has converged far below the samples' noise."""
RELAXED: Final = 1.5
"""Successive over-relaxation: any factor below 2 converges, this one in half the sweeps of 1."""


class CoveredSample(NamedTuple):
    """One sample: the time it covers, in periods since some moment, and its mean."""

    begin: float
    end: float
    value: float


class Equations(NamedTuple):
    """Normal equations: all that least squares needs to know of the samples."""

    matrix: tuple[tuple[float, ...], ...]
    right: tuple[float, ...]
    squares: float
    """Sum of the squares of the values."""
    samples: int


def equations(samples: Sequence[CoveredSample], parts: int) -> Equations:
    """Of a profile in so many equal parts."""
    columns = list(zip(*(shares(sample, parts) for sample in samples), strict=True))
    values = [sample.value for sample in samples]
    lower = [[_dot(a, b) for b in columns[: i + 1]] for i, a in enumerate(columns)]
    return Equations(
        tuple(tuple(lower[max(i, j)][min(i, j)] for j in range(parts)) for i in range(parts)),
        tuple(_dot(column, values) for column in columns),
        _dot(values, values),
        len(values),
    )


def shares(sample: CoveredSample, parts: int) -> list[float]:
    """How much of a sample lies in each part of the period; they add up to 1."""
    whole = (floor(sample.end) - floor(sample.begin)) / parts
    length = sample.end - sample.begin
    begin, end = _before(sample.begin, parts), _before(sample.end, parts)
    return [(whole + after - before) / length for before, after in zip(begin, end, strict=True)]


def together(several: Sequence[Equations]) -> Equations:
    """Of all their samples."""
    return Equations(
        tuple(
            tuple(map(sum, zip(*rows, strict=True)))
            for rows in zip(*(one.matrix for one in several), strict=True)
        ),
        tuple(map(sum, zip(*(one.right for one in several), strict=True))),
        sum(one.squares for one in several),
        sum(one.samples for one in several),
    )


def solved(equations: Equations, smoothing: float, start: Sequence[float]) -> tuple[float, ...]:
    """The profile from 0 to 100 that fits best, where a difference between neighbours (the last and
    the first are neighbours too) costs `smoothing` as much as one between a sample and the fit."""
    parts = len(equations.right)
    cost = smoothing * equations.samples / parts**2
    rows = [list(row) for row in equations.matrix]
    for i in range(parts):
        j = (i + 1) % parts
        rows[i][i] += cost
        rows[j][j] += cost
        rows[i][j] -= cost
        rows[j][i] -= cost
    steps = [RELAXED / row[i] if row[i] > 0 else 0.0 for i, row in enumerate(rows)]
    profile = list(start)
    for _ in range(SWEEPS):
        moved = 0.0
        for i, row in enumerate(rows):
            value = profile[i] + (equations.right[i] - sum(map(mul, row, profile))) * steps[i]
            value = min(max(value, LOW), HIGH)
            moved = max(moved, abs(value - profile[i]))
            profile[i] = value
        if moved < SETTLED:
            break
    return tuple(profile)


def error(equations: Equations, profile: Sequence[float]) -> float:
    """Mean square of the samples less what the profile says they are."""
    through = [_dot(row, profile) for row in equations.matrix]
    square: float = equations.squares - 2 * _dot(profile, equations.right) + _dot(profile, through)
    return max(0.0, square) / equations.samples


def _before(at: float, parts: int) -> list[float]:
    """How much of each part lies before a moment within its period."""
    phase = at - floor(at)
    full = min(int(phase * parts), parts - 1)
    return [1 / parts] * full + [phase - full / parts] + [0.0] * (parts - 1 - full)


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(map(mul, a, b), 0.0)


# Readings folded on the starts of the steps.

PARTS: Final = 12
"""Equal ones, of a step."""
LEAST_STEPS: Final = 10
MOST_SAMPLES: Final = 240
"""24 s: enough for the noise of a sample (1 to 2 points), short enough to be about now."""
LEAST_SAMPLES: Final = 120
"""Ten for each part, 30 in each quarter."""
QUARTERS: Final = 4
"""Profiles of their own, by which it is seen whether one part of the samples shows the others."""
ALIKE: Final = 0.15
"""A step this far from the median one is left out, with the samples that touch it."""
MOSTLY: Final = 0.8
"""So much of the samples must lie in steps that are alike."""
SMOOTHINGS: Final = (0.003, 0.1)
"""The first follows a profile with sharp edges, the second one that hardly moves; the quarters
choose."""
HARMONICS: Final = 2
UNCERTAIN: Final = 3.0
"""Points: a profile whose coarsest waves are not known to this is not shown. In simulations with
sample times 10 ms off (tests/unit/session/test_scope.py) what passes is right to 15 points."""
IN_TIME: Final = 0.9
"""From here on the samples come at the same few phases of a step, again and again."""


class ProfileSample(NamedTuple):
    """One sample: the mean over a time, percent."""

    start_ns: int
    end_ns: int
    value: float


def folded(readings: Sequence[ProfileSample], edges_ns: Sequence[int], source: str) -> Scope | None:
    """The profile of one step, from readings in time order.

    `edges_ns`: where each step begins, oldest first, and where the last one ends. None where the
    readings do not resolve a profile.
    """
    if len(edges_ns) <= LEAST_STEPS or len(readings) < LEAST_SAMPLES:
        return None
    readings = readings[-MOST_SAMPLES:]
    edges_ns = edges_ns[max(0, bisect_right(edges_ns, readings[0].start_ns) - 1) :]
    if len(edges_ns) <= LEAST_STEPS:
        return None
    lengths = [after - before for before, after in pairwise(edges_ns)]
    step_ns = median(lengths)
    covered = _placed(readings, edges_ns, lengths, step_ns)
    if len(covered) < max(LEAST_SAMPLES, MOSTLY * len(readings)) or _keeps_time(covered):
        return None
    steps = round(covered[-1].end - covered[0].begin)
    size = len(covered) // QUARTERS
    quarters = [equations(covered[i * size : (i + 1) * size], PARTS) for i in range(QUARTERS)]
    wrong, mean, fits = min(_fitted(quarters, smoothing) for smoothing in SMOOTHINGS)
    if steps < LEAST_STEPS or _uncertain(covered, wrong) > UNCERTAIN:
        return None
    return Scope(
        step_ns=round(step_ns),
        steps=steps,
        source=source,
        mean=mean,
        low=tuple(map(min, zip(mean, *fits, strict=True))),
        high=tuple(map(max, zip(mean, *fits, strict=True))),
    )


def _placed(
    readings: Sequence[ProfileSample],
    edges_ns: Sequence[int],
    lengths: Sequence[int],
    step_ns: float,
) -> list[CoveredSample]:
    """The readings in steps since the first edge; those that touch an unusual step are left out."""
    odd = [0]
    for length in lengths:
        odd.append(odd[-1] + (abs(length - step_ns) > ALIKE * step_ns))
    covered: list[CoveredSample] = []
    for start_ns, end_ns, value in readings:
        first = bisect_right(edges_ns, start_ns) - 1
        last = bisect_right(edges_ns, end_ns) - 1
        if first < 0 or last >= len(lengths) or odd[last + 1] > odd[first] or end_ns <= start_ns:
            continue
        begin = first + (start_ns - edges_ns[first]) / lengths[first]
        end = last + (end_ns - edges_ns[last]) / lengths[last]
        covered.append(CoveredSample(begin, end, value))
    return covered


def _fitted(
    quarters: Sequence[Equations], smoothing: float
) -> tuple[float, tuple[float, ...], list[tuple[float, ...]]]:
    """How wrong the quarters are about each other (mean square), the profile by all of them, and
    by each."""
    every = together(quarters)
    flat = [sum(every.right) / every.samples] * PARTS
    mean = solved(every, smoothing, flat)
    fits = [solved(quarter, smoothing, mean) for quarter in quarters]
    wrong = [
        error(other, fit)
        for fit, own in zip(fits, quarters, strict=True)
        for other in quarters
        if other is not own
    ]
    return sum(wrong) / len(wrong), mean, fits


def _uncertain(covered: Sequence[CoveredSample], wrong: float) -> float:
    """Points by which the profile's coarsest waves may be off.

    A mean over x periods passes on sin(pi m x) / (pi m x) of a wave with m periods a step: nothing
    of one that it covers a whole number of times. Least squares over n samples then know the wave's
    height to sqrt(2 / n) of their noise, over what is passed on.
    """
    worst = 0.0
    for wave in range(1, HARMONICS + 1):
        angles = [pi * wave * (one.end - one.begin) for one in covered]
        passed = sqrt(sum((sin(angle) / angle) ** 2 for angle in angles) / len(angles))
        worst = max(worst, sqrt(2 * wrong / len(covered)) / max(passed, 1e-6))
    return worst


def _keeps_time(covered: Sequence[CoveredSample]) -> bool:
    """Whether the samples begin at four phases of a step at most, so that waves look alike."""
    for phases in range(1, 5):
        angles = [2 * pi * phases * one.begin for one in covered]
        if hypot(sum(map(cos, angles)), sum(map(sin, angles))) > IN_TIME * len(covered):
            return True
    return False


# Where in a step a folded profile begins: by the GPU's own clock.

T = TypeVar("T")

IDLE: Final = (0.10, 0.90)
"""Part of a step that the GPU must idle for, between these: less leaves nothing to go by."""
AGREES: Final = 0.80
"""Correlation of the turned profile with the GPU's own busy time. The three profiles that an H200
gave reach 0.96 to 0.99."""


def anchored(scope: Scope, rows: Sequence[GpuStep]) -> Scope | None:
    """The profile in its place; None where the GPU's clock does not show it."""
    busy = busy_parts(rows, len(scope.mean))
    mean = [value for value in scope.mean if value is not None]
    if busy is None or len(mean) < len(scope.mean):
        return None
    fits = [_correlation(_turned(mean, by), busy) for by in range(len(mean))]
    best = max(range(len(mean)), key=fits.__getitem__)
    if fits[best] < AGREES:
        return None
    return replace(
        scope,
        mean=tuple(_turned(scope.mean, best)),
        low=tuple(_turned(scope.low, best)),
        high=tuple(_turned(scope.high, best)),
    )


def busy_parts(rows: Sequence[GpuStep], parts: int) -> list[float] | None:
    """How busy each of so many equal parts of a step is, 0 to 1, as the phases lie in it: the wait
    for data first, what lies between the phases last. None where that says nothing."""
    wall = sum(row.wall_ns for row in rows)
    if sum(row.count for row in rows) < LEAST_STEPS or wall <= 0:
        return None
    waits = sum(row.exposed_ns for row in rows) / wall
    after = sum(row.other_ns for row in rows) / wall
    if not IDLE[0] <= waits + after <= IDLE[1]:
        return None
    begins, ends = waits * parts, (1.0 - after) * parts
    return [max(0.0, min(at + 1, ends) - max(at, begins)) for at in range(parts)]


def _turned(values: Sequence[T], by: int) -> list[T]:
    return [*values[by:], *values[:by]]


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    mean_one, mean_other = sum(one) / len(one), sum(other) / len(other)
    both = sum((a - mean_one) * (b - mean_other) for a, b in zip(one, other, strict=True))
    spread = sqrt(sum((a - mean_one) ** 2 for a in one) * sum((b - mean_other) ** 2 for b in other))
    return both / spread if spread else 0.0
