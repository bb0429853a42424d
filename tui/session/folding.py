"""Samples folded on a period: what one period looks like, from means over stretches of many.

A sample is the mean of the profile over the part of the period, or the periods, that it covers: one
linear equation in the profile's parts. Together they are solved by least squares, smoothed a little
and bounded to what a share can be. A stretch longer than a period still tells something by what it
covers beyond whole ones.
"""

from collections.abc import Sequence
from math import floor
from operator import mul
from typing import Final, NamedTuple

LOW, HIGH = 0.0, 100.0
"""Percent."""
SWEEPS: Final = 30
SETTLED: Final = 0.1
"""Points: a sweep that moves no part by more has converged far below the samples' noise."""
RELAXED: Final = 1.5
"""Successive over-relaxation: any factor below 2 converges, this one in half the sweeps of 1."""


class Covered(NamedTuple):
    """One sample: the stretch it covers, in periods since some moment, and its mean."""

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


def equations(samples: Sequence[Covered], parts: int) -> Equations:
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


def shares(sample: Covered, parts: int) -> list[float]:
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


def solved(told: Equations, smoothing: float, start: Sequence[float]) -> tuple[float, ...]:
    """The profile from 0 to 100 that fits best, where a difference between neighbours (the last and
    the first are neighbours too) costs `smoothing` as much as one between a sample and the fit."""
    parts = len(told.right)
    cost = smoothing * told.samples / parts**2
    rows = [list(row) for row in told.matrix]
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
            value = profile[i] + (told.right[i] - sum(map(mul, row, profile))) * steps[i]
            value = min(max(value, LOW), HIGH)
            moved = max(moved, abs(value - profile[i]))
            profile[i] = value
        if moved < SETTLED:
            break
    return tuple(profile)


def error(told: Equations, profile: Sequence[float]) -> float:
    """Mean square of the samples less what the profile says they are."""
    through = [_dot(row, profile) for row in told.matrix]
    square: float = told.squares - 2 * _dot(profile, told.right) + _dot(profile, through)
    return max(0.0, square) / told.samples


def _before(at: float, parts: int) -> list[float]:
    """How much of each part lies before a moment within its period."""
    phase = at - floor(at)
    full = min(int(phase * parts), parts - 1)
    return [1 / parts] * full + [phase - full / parts] + [0.0] * (parts - 1 - full)


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(map(mul, a, b), 0.0)
