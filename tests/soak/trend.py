"""A run in ten parts, and whether something grows: pure arithmetic."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

PARTS: Final = 10
WARM_PARTS: Final = 1
"""Parts at the beginning that no line is laid through: caches fill, imports are done late."""
T_95: Final = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895)
"""Student's t, 95th percentile (90 % lie within both sides), for 1 to 7 degrees of freedom."""

Figure = float | None


def part_of(s: float, length_s: float) -> int:
    """Which part of a run a moment lies in, from 0."""
    return min(PARTS - 1, max(0, int(PARTS * s / length_s)))


def parts(seen: Iterable[tuple[float, float]], length_s: float) -> list[Figure]:
    """The median of what was seen, as (seconds since the beginning, value), in each part."""
    values: list[list[float]] = [[] for _ in range(PARTS)]
    for s, value in seen:
        values[part_of(s, length_s)].append(value)
    return [statistics.median(part) if part else None for part in values]


@dataclass(frozen=True)
class Trend:
    """Change an hour, and its 90 % interval."""

    hourly: float
    low: float
    high: float


def trend(figures: Sequence[Figure], length_s: float, warm_s: float = 0.0) -> Trend | None:
    """Least squares through the parts of a run: without the first one, those that begin in the
    first `warm_s`, and the absent ones.

    Through ten medians, not through samples: what lies seconds apart is not independent, and its
    interval would be far too narrow. None with fewer than three.
    """
    points = [
        (at * length_s / PARTS / 3600, value)
        for at, value in enumerate(figures)
        if at >= WARM_PARTS and at * length_s / PARTS >= warm_s and value is not None
    ]
    freedom = len(points) - 2
    if freedom < 1:
        return None
    mean_h = statistics.fmean(hour for hour, _ in points)
    mean = statistics.fmean(value for _, value in points)
    spread = sum((hour - mean_h) ** 2 for hour, _ in points)
    slope = sum((hour - mean_h) * (value - mean) for hour, value in points) / spread
    left = sum((value - mean - slope * (hour - mean_h)) ** 2 for hour, value in points)
    half = T_95[freedom - 1] * math.sqrt(left / freedom / spread)
    return Trend(slope, slope - half, slope + half)
