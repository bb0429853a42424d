"""The step's length, where samples can follow it, and silence where they cannot."""

import random

import pytest

from gpuwatch.tui.session.stack_phases.classify import TimedPhase, period_ns
from gpuwatch.tui.session.stack_phases.table import StackPhase

INTERVAL_NS = 100_000_000
ORDER: tuple[StackPhase, ...] = ("data", "forward", "backward", "optimizer")
SHARES = (0.2, 0.25, 0.45, 0.1)


def sampled(step_s: float, seed: int, count: int = 190) -> list[TimedPhase]:
    """py-spy's pauses are random; a step varies by 5 %."""
    chance = random.Random(seed)
    edges: list[tuple[float, StackPhase]] = []
    at_s = 0.0
    while at_s < count * 0.16:
        length = step_s * max(0.5, chance.gauss(1, 0.05))
        for phase, share in zip(ORDER, SHARES, strict=True):
            edges.append((at_s, phase))
            at_s += length * share
    moments: list[TimedPhase] = []
    t_s, edge = 0.0, 0
    for _ in range(count):
        t_s += chance.uniform(0.05, 0.15)
        while edges[edge + 1][0] <= t_s:
            edge += 1
        moments.append((round(t_s * 1e9), edges[edge][1]))
    return moments


@pytest.mark.parametrize("step_s", [0.5, 0.7, 1.0])
def test_long_steps_are_reported_to_ten_percent(step_s: float) -> None:
    for seed in range(20):
        found = period_ns(sampled(step_s, seed), INTERVAL_NS)
        assert found is not None
        assert found / 1e9 == pytest.approx(step_s, rel=0.1)


@pytest.mark.parametrize("step_s", [0.005, 0.02, 0.05, 0.12, 0.2, 0.3])
def test_steps_that_samples_pass_over_are_not_guessed(step_s: float) -> None:
    reported = [period_ns(sampled(step_s, seed), INTERVAL_NS) for seed in range(100)]
    assert sum(found is not None for found in reported) <= 2


def test_a_few_returns_are_no_rhythm() -> None:
    assert period_ns(sampled(1.0, 0)[:50], INTERVAL_NS) is None


def test_what_lies_between_two_stretches_is_no_step() -> None:
    whole = sampled(0.5, 3)
    apart = [
        (t_ns + 5_000_000_000 * (index // 60), phase) for index, (t_ns, phase) in enumerate(whole)
    ]
    found = period_ns(apart, INTERVAL_NS)
    assert found is not None
    assert found / 1e9 == pytest.approx(0.5, rel=0.1)
