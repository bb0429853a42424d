"""Means of autocorrelated series, and what a change between two of them is worth."""

import random
from math import inf

import pytest

from gpuwatch.tui.compare.intervals import (
    RUN_TO_RUN,
    Estimate,
    change,
    most_of,
    of_runs,
    ratio_of,
    settled_from,
    student,
)
from tests.unit.compare.runs import correlated


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (10, 2.228), (19, 2.093), (inf, 1.960)],
)
def test_student_as_in_the_tables(freedom: float, quantile: float) -> None:
    assert student(0.975, freedom) == pytest.approx(quantile, rel=0.01)


def test_the_error_of_autocorrelated_steps_holds_the_mean_as_often_as_it_states() -> None:
    """400 series of known mean: 95 % intervals hold it 95 % of the time, which the formula for
    independent values misses by far."""
    rounds, held, held_if_independent = 400, 0, 0
    for seed in range(rounds):
        rng, drift, values = random.Random(seed), 0.0, []
        for _ in range(600):
            drift = 0.8 * drift + rng.gauss(0.0, 1.0)
            values.append(100.0 + drift)
        found = ratio_of(values, [1.0] * len(values))
        assert found is not None
        reach = student(0.975, found.freedom)
        held += abs(found.mean - 100.0) <= reach * found.error
        variance = sum((one - found.mean) ** 2 for one in values) / (len(values) - 1)
        held_if_independent += abs(found.mean - 100.0) <= 1.96 * (variance / len(values)) ** 0.5
    assert 0.90 <= held / rounds <= 0.98
    assert held_if_independent / rounds < 0.75


def test_a_series_has_settled_behind_its_warming_up() -> None:
    rng = random.Random(1)
    warming = [300.0 - 10 * at for at in range(20)]
    steady = [100.0 + rng.gauss(0, 2) for _ in range(300)]
    assert 15 <= settled_from(warming + steady) <= 40
    assert settled_from(steady) <= 60


def test_a_series_is_left_out_to_its_half_at_most() -> None:
    assert settled_from([float(at) for at in range(100, 0, -1)]) <= 50
    assert settled_from([1.0] * 10) == 0


def test_one_run_has_the_spread_from_run_to_run_in_its_error() -> None:
    alone = of_runs([Estimate(100.0, 0.0, inf)])
    assert alone.error == pytest.approx(100.0 * RUN_TO_RUN)
    several = of_runs([Estimate(100.0, 0.0, inf), Estimate(104.0, 0.0, inf)])
    assert (several.mean, several.freedom) == (102.0, 1)
    assert several.error == pytest.approx(2.0)


def test_a_change_has_its_interval_in_the_unit_and_in_parts() -> None:
    moved = change(Estimate(100.0, 1.0, inf), Estimate(110.0, 1.0, inf))
    assert moved.relative == pytest.approx(0.10)
    assert moved.low == pytest.approx(10 - 1.96 * 2**0.5, rel=1e-3)
    assert moved.is_found
    assert not change(Estimate(100.0, 5.0, inf), Estimate(110.0, 5.0, inf)).is_found


def test_too_few_rows_have_no_error() -> None:
    assert ratio_of([1.0] * 4, [1.0] * 4) is None
    assert ratio_of([0.0] * 9, [0.0] * 9) is None
    assert len(correlated(50, 10.0, 1)) == 50


def host_most(seed: int, readings: int) -> Estimate:
    """Of batches of texts, a few of them long: readings in MiB."""
    rng = random.Random(seed)
    held = [200 + rng.lognormvariate(3.5, 1.0) for _ in range(readings)]
    found = most_of(max(held), held)
    assert found is not None
    return of_runs([found])


@pytest.mark.parametrize("readings", [(12, 12), (60, 60), (240, 240), (12, 60)])
def test_the_most_of_equal_runs_is_no_change(readings: tuple[int, int]) -> None:
    """As readings of one run differ, so does the largest of them from run to run."""
    first, second = readings
    alarms = sum(
        change(host_most(2 * seed, first), host_most(2 * seed + 1, second)).is_found
        for seed in range(200)
    )
    assert alarms <= 20


def test_the_most_of_steady_readings_is_as_sure_as_a_run_can_be() -> None:
    before, after = most_of(1000.0, [900.0] * 30), most_of(1050.0, [945.0] * 30)
    assert before is not None
    assert after is not None
    assert (before.error, after.error) == (0.0, 0.0)
    assert change(of_runs([before]), of_runs([after])).is_found
    assert most_of(1000.0, [900.0] * 4) is None


def test_growth_leaves_no_doubt_of_the_most_there_was() -> None:
    """2 to 7.7 GB in 15 s were "no change found": a leak widened its own interval."""
    grown = [2.0 + 0.38 * second for second in range(16)]
    found = most_of(max(grown), grown)
    assert found is not None
    assert found.error < 0.05 * found.mean


def test_a_pause_does_not_hide_the_warming_up_before_it() -> None:
    chance = random.Random(4)
    steps = [chance.gauss(75.0 if at < 120 else 25.0, 1.0) for at in range(480)]
    steps[400] += 500.0  # an evaluation
    assert settled_from(steps) == 120
