"""What runs now: the fresher of the message and the page."""

import pytest
from msgspec.structs import replace

from gpuwatch.probe.wire import marks
from gpuwatch.probe.wire.page import STATE_ARMED, STATE_DISARMED, STATE_UNINSTALLED
from gpuwatch.tui.model.observations import PageSeen
from gpuwatch.tui.session.open_step import OpenStepStore
from tests.unit.session.making import MS, delivered, open_at


def page(kind: int, since_ms: float, steps: int = 3, state: int = STATE_ARMED) -> PageSeen:
    return PageSeen(
        t_ns=0,
        open_kind=kind,
        open_since_ns=round(since_ms * MS),
        steps=steps,
        heartbeat_ns=0,
        state=state,
    )


def reported(since_ms: float, **fields: object) -> OpenStepStore:
    store = OpenStepStore()
    message = delivered([], since_ms, open=open_at(since_ms, **fields))  # type: ignore[arg-type]
    store.delivered(message.batch, steps=3)
    return store


def test_nothing_before_the_first_mark() -> None:
    store = OpenStepStore()
    assert store.at(5 * MS, None) is None
    store.page_seen(page(0, 0))
    assert store.at(5 * MS, None) is None


def test_a_message_shows_the_phase_and_both_ages() -> None:
    step = reported(1000, kind=marks.BACKWARD_ENTER, started_ns=400 * MS).at(
        1600 * MS, "f (a.py:1)"
    )
    assert step is not None
    assert step.phase == "backward"
    assert step.age_s == pytest.approx(0.6)
    assert step.step_age_s == pytest.approx(1.2)


def test_how_long_a_step_has_lasted_is_known_until_the_last_message_or_look_at_the_page() -> None:
    store = reported(1000, kind=marks.BACKWARD_ENTER, started_ns=400 * MS)
    store.page_seen(replace(page(marks.BACKWARD_ENTER, 1000), t_ns=1100 * MS))
    step = store.at(1600 * MS, None)
    assert step is not None
    assert step.step_lasted_s == pytest.approx(0.7)
    assert step.step_age_s == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("kind", "evaluating", "evaluated_s"),
    [(marks.FETCH_LEAVE, True, 0.3), (marks.CHECKPOINT_ENTER, True, 0.2), (marks.STEP, False, 0.2)],
    ids=["goes on", "a checkpoint behind it", "its metrics behind it"],
)
def test_what_a_step_has_evaluated_is_not_all_of_it(
    kind: int, evaluating: bool, evaluated_s: float
) -> None:
    fields = {"started_ns": 400 * MS, "evaluation_ns": 200 * MS, "evaluating": evaluating}
    store = reported(1000, kind=kind, **fields)
    store.page_seen(replace(page(kind, 1000), t_ns=1100 * MS))
    step = store.at(1600 * MS, None)
    assert step is not None
    assert step.evaluated_s == pytest.approx(evaluated_s)


def test_a_phase_of_the_users_has_its_name_until_the_probe_is_held_up() -> None:
    """The page, which is read before the message comes, knows no names: "phase" was shown."""
    store = reported(1000, kind=marks.PHASE_ENTER, user_phase="augment")
    store.page_seen(page(marks.PHASE_ENTER, 1200))
    soon, held_up = store.at(1400 * MS, None), store.at(4000 * MS, None)
    assert soon is not None
    assert held_up is not None
    assert (soon.phase, held_up.phase) == ("augment", "phase")
    assert [soon.age_s, held_up.age_s] == pytest.approx([0.4, 2.8])
    store.page_seen(page(marks.BACKWARD_ENTER, 1200))
    other = store.at(1400 * MS, None)
    assert other is not None
    assert other.phase == "backward"


def test_a_frame_is_reported_only_of_a_mark_that_is_older_than_the_samples() -> None:
    store = reported(1000, kind=marks.BACKWARD_ENTER)
    young, old = store.at(1600 * MS, "f (a.py:1)"), store.at(9000 * MS, "f (a.py:1)")
    assert young is not None
    assert old is not None
    assert (young.frame, old.frame) == (None, "f (a.py:1)")


def test_the_way_there_is_reported_with_the_frame() -> None:
    store = reported(1000, kind=marks.BACKWARD_ENTER)
    way = ("main (train.py:9)", "f (a.py:1)")
    young, old = store.at(1600 * MS, way[-1], way), store.at(9000 * MS, way[-1], way)
    assert young is not None
    assert old is not None
    assert (young.stack, old.stack) == ((), way)


def test_the_page_is_fresher_while_the_interpreter_lock_is_held() -> None:
    store = reported(1000, kind=marks.FETCH_LEAVE)
    store.page_seen(page(marks.OPTIMIZER_ENTER, 1400))
    step = store.at(9000 * MS, None)
    assert step is not None
    assert step.phase == "optimizer"
    assert step.age_s == pytest.approx(7.6)


def test_a_page_that_counts_more_steps_shows_nothing_of_the_steps_start() -> None:
    store = reported(1000)
    store.page_seen(page(marks.FETCH_ENTER, 1400, steps=4))
    step = store.at(1500 * MS, None)
    assert step is not None
    assert step.step_age_s is None


def test_a_devices_event_behind_the_same_mark_does_not_hide_it() -> None:
    store = reported(1000, kind=marks.BACKWARD_ENTER, started_ns=400 * MS)
    store.page_seen(page(marks.STAMPED, 1000))
    step = store.at(6000 * MS, None)
    assert step is not None
    assert step.phase == "backward"
    assert step.age_s == pytest.approx(5.0)


def test_an_old_page_does_not_win() -> None:
    store = reported(1000, kind=marks.BACKWARD_ENTER)
    store.page_seen(page(marks.FETCH_LEAVE, 900))
    step = store.at(1100 * MS, None)
    assert step is not None
    assert step.phase == "backward"


@pytest.mark.parametrize("state", [STATE_DISARMED, STATE_UNINSTALLED])
def test_a_probe_that_stopped_shows_nothing_of_now(state: int) -> None:
    store = reported(1000, kind=marks.BACKWARD_ENTER)
    store.page_seen(page(marks.BACKWARD_ENTER, 1000, state=state))
    assert store.at(9000 * MS, None) is None
    assert store.spans(9000 * MS) == ()


def test_a_users_phase_has_its_name_and_evaluation_its_own() -> None:
    named = reported(1000, kind=marks.PHASE_ENTER, user_phase="augment").at(1001 * MS, None)
    assert named is not None
    assert named.phase == "augment"
    evaluated = reported(1000, kind=marks.FETCH_ENTER, evaluating=True).at(1001 * MS, None)
    assert evaluated is not None
    assert evaluated.phase == "evaluation"


def test_spans_end_with_what_is_going_on_now() -> None:
    store = reported(1000, kind=marks.FETCH_ENTER, started_ns=600 * MS)
    store.page_seen(replace(page(marks.FETCH_ENTER, 1000), heartbeat_ns=1500 * MS))
    assert store.spans(1500 * MS) == ((600 * MS, 1000 * MS, True), (1000 * MS, 1500 * MS, False))


def test_of_steps_that_nobody_knows_yet_nothing_is_drawn() -> None:
    """200 steps of 1 ms come with the next message: the chart's end was all work or all waiting."""
    store = reported(1000, kind=marks.FETCH_ENTER, started_ns=600 * MS)
    store.page_seen(replace(page(marks.FETCH_ENTER, 1000), heartbeat_ns=1050 * MS))
    assert store.spans(1300 * MS)[-1] == (1000 * MS, 1050 * MS, False)
    held_up = store.spans(2100 * MS)[-1]
    assert held_up == (1000 * MS, 2100 * MS, False), "a probe that cannot answer is held up"
