"""Simulated runs with a known cause, each seeded."""

import random
from typing import Any

from tests.unit.verdict.windows import PartsOf


def steady_wait(share: float, seed: int, work_ms: float = 100.0) -> PartsOf:
    """A wait of `share` at every step, give or take 30 %."""
    chance = random.Random(seed)
    mean_ms = share / (1 - share) * work_ms

    def parts(_: int) -> dict[str, Any]:
        return {
            "data_ms": max(0.0, mean_ms * chance.gauss(1, 0.3)),
            **_work(work_ms * chance.gauss(1, 0.05)),
        }

    return parts


def bursty_wait(share: float, seed: int, work_ms: float = 100.0, one_in: int = 8) -> PartsOf:
    """The same in one step of eight, of exponential length."""
    chance = random.Random(seed)
    mean_ms = share / (1 - share) * work_ms * one_in

    def parts(_: int) -> dict[str, Any]:
        waits = chance.random() < 1 / one_in
        return {
            "data_ms": chance.expovariate(1 / mean_ms) if waits and mean_ms else 0.0,
            **_work(work_ms * chance.gauss(1, 0.05)),
        }

    return parts


def _work(ms: float) -> dict[str, float]:
    return {
        "forward_ms": 0.4 * ms,
        "backward_ms": 0.5 * ms,
        "optimizer_ms": 0.04 * ms,
        "other_ms": 0.02 * ms,
    }


def two_waits(data: float, other: float, seed: int, bursty: bool) -> PartsOf:
    """Waiting for data and Python between the phases: their shares of a step of 100 ms."""
    chance = random.Random(seed)

    def length(share: float) -> float:
        if bursty:
            comes = share and chance.random() < 1 / 8
            return chance.expovariate(1 / (800 * share)) if comes else 0.0
        return max(0.0, 100 * share * chance.gauss(1, 0.3))

    def parts(_: int) -> dict[str, Any]:
        return {
            "data_ms": length(data),
            "other_ms": length(other),
            "forward_ms": 100 * (1 - data - other) * chance.gauss(1, 0.05),
        }

    return parts
