"""Whole stretches of training that end in an evaluation."""

from dataclasses import replace

from gpuwatch.tui.session.events import EvaluationCycleStore
from gpuwatch.tui.steps import Step
from gpuwatch.tui.verdict.window import OpenStep
from tests.unit.verdict.windows import MS, run


def every_tenth(count: int) -> list[Step]:
    """Steps of 10 ms, 1 ms of it Python; every tenth with an evaluation, and 21 ms of Python."""
    plain = {"forward_ms": 9, "other_ms": 1}
    return run(count, lambda n: plain | ({} if n % 10 else {"evaluation_ms": 80, "other_ms": 21}))


def store(rows: list[Step]) -> EvaluationCycleStore:
    made = EvaluationCycleStore()
    for row in rows:
        made.step_ended(row)
    return made


def test_cycles_from_the_first_step_on() -> None:
    first, second = store(every_tenth(25)).all()
    assert (first.steps, first.fetches, first.first) == (10, 10, True)
    assert (second.steps, second.first) == (10, False)
    assert first.evaluation_ns == 100 * MS
    assert first.wall_ns == 200 * MS


def test_a_cycle_that_began_before_anybody_looked_is_not_whole() -> None:
    seen = store(every_tenth(25)[3:]).all()
    assert [(one.steps, one.whole, one.last_step) for one in seen] == [
        (7, False, 10),
        (10, True, 20),
    ]


def test_steps_that_passed_unseen_end_a_cycle() -> None:
    rows = every_tenth(35)
    seen = store(rows[:14] + rows[17:]).all()
    assert [(one.first, one.whole) for one in seen] == [(True, True), (False, False), (False, True)]


def test_numbers_that_begin_anew_begin_a_run() -> None:
    assert [one.first for one in store(every_tenth(14) + every_tenth(14)).all()] == [True, True]


def test_a_look_at_the_held_out_set_before_training_is_no_part_of_a_cycle() -> None:
    """Lightning's sanity check: two batches, before the first of the training."""
    looked = {"forward_ms": 4, "inference": True}
    trained = {"forward_ms": 9}
    rows = run(12, lambda n: looked if n < 3 else trained | {"evaluation_ms": 80 * (n == 12)})
    seen = store(rows).all()
    assert [(one.fetches, one.first, one.whole) for one in seen] == [(10, True, True)]


def test_the_first_evaluation_is_under_way_while_it_goes_on() -> None:
    """No step ends in it; later ones are known by those before."""
    now = OpenStep("evaluation", 0.1, None, evaluating=True, frame=None, evaluated_s=2.0)
    training = store(run(30, lambda _: {"forward_ms": 9, "other_ms": 1}))
    seen = training.under_way(now)
    assert seen is not None
    assert (seen.steps, seen.last_step, seen.first) == (30, 30, True)
    assert (seen.wall_ns, seen.evaluation_ns) == (2_300 * MS, 2_000 * MS)
    assert training.under_way(replace(now, evaluated_s=0.0)) is None
    assert store(every_tenth(25)).under_way(now) is None
    assert store(every_tenth(9)[3:]).under_way(now) is None, "nobody knows how long it trained"
    assert store([]).under_way(now) is None, "nothing was trained"
