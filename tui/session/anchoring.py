"""Where in a step a folded profile begins: told by the GPU's own clock.

Folding tells the shape of a step's profile well and its place badly: a counter's sample speaks of a
time some tens of milliseconds before it was read, and on an H200 that was not the same in each run
(tests/gpu/h200.md). But the steps on the GPU's clock say exactly when it idles; so the profile is
turned until its idle part lies there, and not shown where there is no such part to go by.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Final, TypeVar

from probe.wire.messages import GpuStep
from tui.snapshot import Scope

T = TypeVar("T")

LEAST_STEPS: Final = 10
IDLE: Final = (0.10, 0.90)
"""Part of a step that the GPU must idle for, between these: less leaves nothing to go by."""
AGREES: Final = 0.80
"""Correlation of the turned profile with the GPU's own busy time. The three profiles that an H200
gave reach 0.96 to 0.99."""


def anchored(scope: Scope, rows: Sequence[GpuStep]) -> Scope | None:
    """The profile in its place; None where the GPU's clock does not tell it."""
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
