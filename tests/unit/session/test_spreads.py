"""How phases differ from step to step."""

import pytest

from gpuwatch.tui.model.snapshot import Rare
from gpuwatch.tui.session.steps import spreads_of
from gpuwatch.tui.session.window_builder import step_stats
from tests.unit.session.making import MS, step, steps


def test_without_steps_there_is_nothing_to_show() -> None:
    assert spreads_of(()) is None


def test_percentiles_longest_and_error_of_each_phase() -> None:
    made = [step(i + 1, 10.0 * i, data_ms=1 + i % 4, forward_ms=2) for i in range(100)]
    reported = spreads_of(made)
    assert reported is not None
    data = reported.phases["data"]
    assert (data.p50_ms, data.p95_ms, data.max_ms) == (2.0, 4.0, 4.0)
    # 1, 2, 3, 4 in turn: ten steps have a mean of 2.3 or of 2.7.
    assert data.error_ms == pytest.approx(0.2 / 9**0.5)
    assert reported.phases["forward"].error_ms == 0.0
    assert set(reported.phases) == {"data", "forward"}


def test_what_no_phase_claims_is_other() -> None:
    made = [step(1, 0, data_ms=3, other_ms=1, wall_ns=10 * MS)]
    reported = spreads_of(made)
    assert reported is not None
    assert reported.phases["other"].max_ms == pytest.approx(7.0)
    assert reported.whole.max_ms == pytest.approx(10.0)


def test_a_users_phase_may_bear_one_of_our_names() -> None:
    made = [step(1, 0, data_ms=3, phases={"data": 2 * MS, "ema": MS})]
    reported = spreads_of(made)
    assert reported is not None
    assert reported.phases["data"].max_ms == pytest.approx(5.0)
    assert reported.phases["ema"].max_ms == pytest.approx(1.0)


def test_merged_steps_all_count_with_their_mean() -> None:
    made = [step(90, 0, forward_ms=90, count=90), *steps(10, 91, 90, forward_ms=100)]
    reported = spreads_of(made)
    assert reported is not None
    assert reported.merged == 90
    assert (reported.whole.p50_ms, reported.whole.max_ms) == (1.0, 100.0)


def test_more_steps_of_two_paces_do_not_lessen_the_error() -> None:
    """Steps of 10 ms, then of 20: however many, they are two stretches that differ."""
    few, many = (
        spreads_of([*steps(n, forward_ms=10), *steps(n, n + 1, 10 * n, forward_ms=20)])
        for n in (10, 100)
    )
    assert few is not None
    assert many is not None
    assert few.whole.error_ms == many.whole.error_ms == pytest.approx(5 / 9**0.5)


def test_merged_steps_weigh_as_many_in_the_error() -> None:
    made = [step(100 * i, 100 * i, forward_ms=100, count=100) for i in range(1, 10)]
    reported = spreads_of([*made, step(901, 1000, forward_ms=10)])
    assert reported is not None
    assert reported.whole.error_ms == pytest.approx(10 / 901, rel=0.01)


def test_the_error_of_a_few_steps_is_not_known() -> None:
    reported = spreads_of(steps(4, forward_ms=10))
    assert reported is not None
    assert reported.whole.error_ms is None


def test_of_what_few_steps_have_it_shows_how_often_and_how_long_each() -> None:
    made = [
        step(i + 1, 10.0 * i, forward_ms=2, checkpoint_ms=i // 10 if i % 10 == 9 else 0)
        for i in range(100)
    ]
    reported = spreads_of(made)
    assert reported is not None
    assert reported.phases["checkpoint"].rare == Rare(events=9, each_ms=5.0, every_steps=10.0)
    assert reported.phases["forward"].rare is None


def test_steps_of_no_time_at_all_are_reported_too() -> None:
    reported = spreads_of([step(1, 5.0)])
    assert reported is not None
    assert (reported.whole.max_ms, reported.whole.rare, reported.phases) == (0.0, None, {})


def test_of_merged_steps_nobody_knows_which_had_it() -> None:
    made = [*steps(10, forward_ms=1), step(60, 10, forward_ms=50, checkpoint_ms=9, count=50)]
    reported = spreads_of(made)
    assert reported is not None
    assert reported.phases["checkpoint"].rare is None


def test_the_statistics_carry_them() -> None:
    made = steps(20, data_ms=1, forward_ms=3)
    stats = step_stats(made, 20, spreads_of(made))
    assert stats is not None
    by_name = {phase.name: phase for phase in stats.phases}
    assert by_name["forward"].spread is not None
    assert by_name["forward"].spread.p95_ms == 3.0
    assert by_name["optimizer"].spread is None
    assert (stats.error_ms, stats.merged) == (0.0, 1)
    assert (stats.whole, stats.whole and stats.whole.max_ms) == (spreads_of(made).whole, 4.0)  # type: ignore[union-attr]
