"""Shares with their intervals, and trends."""

import random

import pytest

from gpuwatch.tui.verdict.statistics import mann_kendall, probability_above, share_of, theil_sen


def test_a_ratio_of_sums_is_not_a_mean_of_ratios() -> None:
    assert share_of([0, 90], [100, 100_000]).mean == pytest.approx(90 / 100_100)


def test_equal_steps_have_no_spread() -> None:
    share = share_of([30] * 20, [100] * 20)
    assert (share.low, share.mean, share.high) == pytest.approx((0.3, 0.3, 0.3))


@pytest.mark.parametrize("rows", [0, 1])
def test_too_little_shows_nothing(rows: int) -> None:
    share = share_of([30] * rows, [100] * rows)
    assert (share.low, share.high) == (0.0, 1.0)


def test_the_interval_holds_the_truth_nine_times_in_ten() -> None:
    """Bursty waits: one step in five waits, truth 20 %."""
    chance = random.Random(7)
    held = 0
    for _ in range(400):
        waits = [chance.randrange(2 * 125) if chance.random() < 0.2 else 0 for _ in range(100)]
        share = share_of(waits, [wait + 100 for wait in waits])
        held += share.low <= 0.2 <= share.high
    assert 0.85 <= held / 400 <= 0.95


def test_probability_of_one_share_above_another() -> None:
    assert probability_above(0.5, 0.0, 0.1) == 1.0
    assert probability_above(0.3, 0.05, 0.3, 0.05) == pytest.approx(0.5)
    assert probability_above(0.4, 0.06, 0.3, 0.08) == pytest.approx(0.841, abs=0.001)


def test_mann_kendall() -> None:
    assert mann_kendall([1, 2, 3, 4, 5, 6, 7, 8]) == pytest.approx(3.34, abs=0.01)
    assert mann_kendall([1] * 8) == 0
    assert mann_kendall([8, 7, 6, 5, 4, 3, 2, 1]) < -3
    # By hand: S is 4, its variance (4 * 3 * 13 - 2 * (2 * 1 * 9)) / 18.
    assert mann_kendall([1, 1, 2, 2]) == pytest.approx((4 - 1) / (120 / 18) ** 0.5)


def test_theil_sen_is_not_moved_by_an_outlier() -> None:
    slope = theil_sen(range(20), [2.0 * at for at in range(19)] + [900.0])
    assert slope is not None
    assert slope.middle == pytest.approx(2.0)
    assert slope.low <= 2.0 <= slope.high
    assert theil_sen([5, 5], [1.0, 2.0]) is None
