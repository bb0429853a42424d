"""Many results become the figures of the issue."""

import math

import pytest

from evaluation import figures
from evaluation.figures import Bin
from evaluation.result import OURS, Result
from evaluation.truth import Truth
from tests.unit.evaluation.examples import NEGATIVE, result_with, score_with


def rows(*results: Result) -> list[figures.Scored]:
    return figures.scored(results, OURS)


DOUBTFUL = Truth(1.04, 1.0, 1.2, "ambiguous", agrees=False, by_construction=False)


def test_what_was_not_measured_as_intended_counts_for_nothing() -> None:
    seen = rows(
        result_with(score_with()),
        result_with(score_with(), truth=DOUBTFUL),
        result_with(score_with(), **NEGATIVE),
    )
    assert len(figures.positives(seen)) == 1
    assert len(figures.negatives(seen)) == 1
    assert figures.scored([result_with(score_with())], "TraceML") == []


def test_time_to_the_first_right_verdict_is_that_of_steady_causes() -> None:
    seen = rows(
        result_with(score_with(first_right_steps=10)),
        result_with(score_with(first_right_steps=None, first_right_s=None)),
        result_with(score_with(first_right_steps=900), family="bursty"),
        result_with(score_with(first_right_steps=900), family="memory"),
        result_with(score_with(first_right_steps=900), family=figures.CHANGING),
        result_with(score_with(first_right_steps=900, live=False)),
    )
    assert figures.steps_to_right(seen) == [10, math.inf]
    assert figures.seconds_to_right(seen) == [3.0, math.inf]


def test_changes_are_counted_over_all_steps_with_a_constant_cause() -> None:
    seen = rows(
        result_with(score_with(changes=1, steps_settled=1_500)),
        result_with(score_with(changes=0, steps_settled=500)),
        result_with(score_with(changes=5), family=figures.CHANGING),
    )
    assert figures.changes_a_thousand_steps(seen) == pytest.approx(0.5)
    assert figures.changes_a_thousand_steps([]) is None


def test_a_forecast_is_held_against_the_gain_where_the_verdict_is_right() -> None:
    seen = rows(
        result_with(score_with(forecast=2.2)),
        result_with(score_with(forecast=1.5, forecast_is="estimate")),
        result_with(score_with(forecast=9.0, right=False)),
        result_with(score_with(forecast=None)),
    )
    assert figures.forecast_errors(seen) == pytest.approx([0.1, 0.25])
    assert figures.forecast_errors(seen, "estimate") == pytest.approx([0.25])
    assert figures.bounds_below_truth(seen) == (0, 1)
    low = rows(result_with(score_with(forecast=1.8)))
    assert figures.bounds_below_truth(low) == (1, 1), "a bound that the truth goes beyond is none"


def test_a_leak_is_found_in_time_or_not() -> None:
    leak = {"kinds": ["memory-growth"], "sub": "leak"}
    seen = rows(
        result_with(score_with(first_right_steps=1_250), **leak),
        result_with(score_with(first_right_steps=1_300), **leak),
        result_with(score_with(first_right_steps=None, right_at_end=False), **leak),
        result_with(score_with()),
    )
    assert figures.leaks_found(seen) == (1, 3)


def test_a_leak_must_not_be_reported_where_there_is_none() -> None:
    seen = rows(
        result_with(score_with(says_leak=True)),
        result_with(score_with(), **NEGATIVE),
        result_with(score_with(says_leak=True), kinds=["memory-growth"]),
    )
    assert figures.leak_alarms(seen) == (1, 2)


def test_confidence_is_calibrated_when_it_is_right_as_often_as_it_states() -> None:
    seen = rows(
        result_with(score_with(confidence=0.6)),
        result_with(score_with(confidence=0.6, right=False)),
        result_with(score_with(confidence=1.0)),
        result_with(score_with(confidence=None)),
    )
    assert figures.brier(seen) == pytest.approx((0.16 + 0.36 + 0.0) / 3)
    assert figures.reliability(seen) == [
        Bin(0.5, 0.8, 2, pytest.approx(0.6), 0.5),  # type: ignore[arg-type]
        Bin(0.9, 1.0, 1, 1.0, 1.0),
    ]


def test_an_accepted_kind_stands_for_the_true_one() -> None:
    seen = rows(
        result_with(score_with(kind="sync"), kinds=["host", "sync"]),
        result_with(score_with(kind="host", right=False)),
        result_with(score_with()),
    )
    counts = {("host", "host"): 1, ("input", "host"): 1, ("input", "input"): 1}
    assert figures.confusion(seen) == counts
    assert figures.macro_f1(seen) == pytest.approx(2 / 3)


def test_nine_in_ten_do_not_exceed_the_90th_percentile() -> None:
    assert figures.percentile_90([float(each) for each in range(1, 11)]) == 9.0
    assert figures.percentile_90([3.0]) == 3.0
    assert figures.percentile_90([]) is None
    assert figures.middle([]) is None
