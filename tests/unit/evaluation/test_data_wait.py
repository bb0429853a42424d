"""The probe's share of waiting against the spans that the script's own clock saw."""

import pytest

from evaluation.data_wait import CoveredTime, data_wait
from tests.unit.verdict.windows import MS, step


def test_spans_inside_others_count_once() -> None:
    covered = CoveredTime([(10, 20), (12, 15), (18, 25), (40, 50)])
    assert [covered.until(t) for t in (5, 10, 15, 25, 30, 45, 60)] == [0, 0, 5, 15, 15, 20, 25]


def test_reported_and_true_are_of_the_same_steps() -> None:
    rows = [step(number, number * 100 * MS, data_ms=30, forward_ms=70) for number in range(1, 11)]
    fetches = [(number * 100 * MS, (number * 100 + 32) * MS) for number in range(1, 11)]
    found = data_wait(rows, fetches, after_step=5)
    assert found is not None
    assert found.told == pytest.approx(0.30)
    assert found.true == pytest.approx(0.32)
    assert found.error_points == pytest.approx(2.0)


def test_steps_with_an_evaluation_are_left_out() -> None:
    rows = [
        step(1, 0, data_ms=10, forward_ms=90),
        step(2, 100 * MS, data_ms=10, forward_ms=90, evaluation_ms=500),
    ]
    found = data_wait(rows, [(0, 10 * MS), (200 * MS, 600 * MS)], after_step=0)
    assert found is not None
    assert found.error_points == pytest.approx(0.0)
    assert data_wait(rows[1:], [], after_step=0) is None
