"""Numbers about steps: ratio of sums, merged rows, nothing invented."""

import pytest

from gpuwatch.tui.session.window_builder import step_stats
from tests.unit.session.making import MS, step, steps


def test_no_steps_is_no_statistics() -> None:
    assert step_stats([], total=0) is None


def test_shares_add_up_to_one_whatever_a_step_leaves_unclaimed() -> None:
    # 10 ms of the 100 are in no phase: they are other.
    made = [step(1, 0, data_ms=50, forward_ms=30, other_ms=10, wall_ns=100 * MS)]
    stats = step_stats(made, total=1)
    assert stats is not None
    shares = {phase.name: phase.share for phase in stats.phases}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["data"] == pytest.approx(0.5)
    assert shares["other"] == pytest.approx(0.2)


def test_phases_are_ratios_of_sums_not_means_of_ratios() -> None:
    # A short step of pure waiting and a long one without any: 10 of 1,010 ms, not a half.
    made = [step(1, 0, data_ms=10), step(2, 10, forward_ms=1000)]
    stats = step_stats(made, total=2)
    assert stats is not None
    assert stats.phases[0].name == "data"
    assert stats.phases[0].share == pytest.approx(10 / 1010)
    assert stats.phases[0].mean_ms == pytest.approx(5.0)


def test_users_phases_stand_beside_ours_and_may_share_a_name() -> None:
    made = [step(1, 0, forward_ms=10, phases={"augment": 5 * MS, "data": 5 * MS})]
    stats = step_stats(made, total=1)
    assert stats is not None
    shares = {phase.name: phase.share for phase in stats.phases}
    assert shares["augment"] == shares["data"] == pytest.approx(0.25)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_merged_rows_count_as_often_as_they_state() -> None:
    # 90 steps of 1 ms in one row, ten of 100 ms one by one.
    made = [step(90, 0, forward_ms=90, count=90), *steps(10, 91, 90, forward_ms=100)]
    stats = step_stats(made, total=100)
    assert stats is not None
    assert stats.in_window == 100
    assert stats.p50_ms == pytest.approx(1.0)
    assert stats.p95_ms == pytest.approx(100.0)
    assert stats.max_ms == pytest.approx(100.0)
    assert stats.steps_s == pytest.approx(100 / 1.09)


def test_samples_a_second_leave_out_batches_that_nobody_could_measure() -> None:
    made = [step(1, 0, forward_ms=500, samples=32), step(2, 500, forward_ms=500)]
    stats = step_stats(made, total=2)
    assert stats is not None
    assert stats.samples_s == pytest.approx(64.0)
    bare = step_stats(made[1:], total=2)
    assert bare is not None
    assert bare.samples_s is None


def test_inference_shows_no_backward_and_no_optimizer() -> None:
    stats = step_stats(steps(3, data_ms=1, forward_ms=9, inference=True), total=3)
    assert stats is not None
    assert [phase.name for phase in stats.phases] == ["data", "forward", "other"]
