"""The sawtooth without a GPU: steps laid out over moments."""

import pytest

from tests.unit.session.making import MS, step, steps
from tui.session.computing import MOMENTS, Computing, grain_for, spans_of


def values(computing: Computing) -> list[int]:
    return [round(sample.value) for sample in computing.samples()]


def laid_out(grain_ms: int, *made: object) -> Computing:
    computing = Computing(grain_ms * MS)
    for one in made:
        computing.add(spans_of(one))  # type: ignore[arg-type]
    return computing


def test_a_step_waits_first_and_then_computes() -> None:
    # ░░░░░░██████ 60 ms of data, 60 ms of work, in moments of 20 ms
    one = step(1, 0, data_ms=60, forward_ms=20, backward_ms=30, optimizer_ms=5, other_ms=5)
    assert values(laid_out(20, one, step(2, 120, forward_ms=20))) == [0, 0, 0, 100, 100, 100]


def test_each_fetch_of_an_accumulating_step_is_a_tooth() -> None:
    one = step(1, 0, data_ms=40, forward_ms=40, fetches=2)
    assert values(laid_out(20, one, step(2, 80, forward_ms=20))) == [0, 100, 0, 100]


def test_a_moment_holds_what_share_of_it_was_work() -> None:
    made = steps(6, data_ms=5, forward_ms=15)
    assert values(laid_out(20, *made)) == [75, 75, 75, 75, 75]


def test_moments_that_nobody_knows_are_left_out() -> None:
    # Steps were lost between 40 and 200 ms: no zero is drawn there.
    computing = laid_out(20, step(1, 0, forward_ms=40), step(9, 200, forward_ms=40))
    computing.add([(240 * MS, 241 * MS, True)])
    assert [sample.t_ns // MS for sample in computing.samples()] == [20, 40, 220, 240]


def test_start_up_of_workers_is_a_wait() -> None:
    assert values(laid_out(20, step(1, 0, startup_ms=40, forward_ms=21)))[:2] == [0, 0]


def test_the_open_step_is_drawn_and_not_kept() -> None:
    computing = laid_out(20, step(1, 0, forward_ms=40))
    open_spans = [(40 * MS, 100 * MS, False), (100 * MS, 120 * MS, True)]
    drawn = [round(sample.value) for sample in computing.samples(open_spans)]
    assert drawn == [100, 100, 0, 0, 0]
    assert values(computing) == [100]
    computing.add(spans_of(step(2, 40, forward_ms=61)))
    assert values(computing) == [100, 100, 100, 100, 100]


def test_a_hang_of_a_day_costs_no_more_than_the_picture() -> None:
    computing = Computing(20 * MS)
    computing.add([(0, 86_400_000 * MS, False)])
    assert len(computing.samples()) <= MOMENTS


@pytest.mark.parametrize(("step_ms", "grain_ms"), [(5, 20), (1000, 20), (2500, 50), (60_000, 500)])
def test_the_grain_follows_the_steps(step_ms: int, grain_ms: int) -> None:
    assert grain_for(step_ms * MS) == grain_ms * MS
