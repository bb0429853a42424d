"""What a cause costs decides what is true, and runs that disagree decide nothing."""

import pytest

from evaluation.truth import constructed_truth, label_of, measured_truth, order


def test_runs_alternate_so_that_drift_falls_on_both_sides() -> None:
    assert order(2) == ("with", "without", "without", "with")
    assert order(3) == (*order(2), "with", "without")


@pytest.mark.parametrize(
    ("gain", "label"),
    [
        (0.9, "negative"),
        (1.029, "negative"),
        (1.03, "ambiguous"),
        (1.05, "contributor"),
        (1.10, "bound"),
        (9.0, "bound"),
    ],
)
def test_a_gain_has_a_label(gain: float, label: str) -> None:
    assert label_of(gain) == label


def test_the_gain_is_that_of_the_medians_and_its_spread_that_of_the_pairs() -> None:
    truth = measured_truth([10.0, 11.0, 12.0], [20.0, 33.0, 24.0], negative=False)
    assert truth.gain == pytest.approx(24 / 11)
    assert (truth.low, truth.high) == (2.0, 3.0)
    assert truth.label == "bound"
    assert truth.agrees


def test_pairs_that_disagree_leave_it_open() -> None:
    truth = measured_truth([10.0, 10.0], [10.2, 14.0], negative=False)
    assert truth.label == "ambiguous"
    assert not truth.agrees


def test_a_negative_that_costs_something_is_not_what_was_intended() -> None:
    assert measured_truth([10.0, 10.0], [10.1, 10.2], negative=True).agrees
    costly = measured_truth([10.0, 10.0], [13.0, 13.0], negative=True)
    assert costly.label == "bound"
    assert not costly.agrees


def test_a_leak_is_true_by_construction_whatever_the_clock_reads() -> None:
    truth = constructed_truth(negative=False)
    assert truth.label == "bound"
    assert truth.agrees
    assert truth.by_construction
