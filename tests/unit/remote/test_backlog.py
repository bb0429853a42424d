"""What an agent holds for its link: bounded, thinned where the link is slow, kept for a minute."""

from gpuwatch.tui.model.observations import AnyObservation, Delivered, StacksSeen, TargetEnded
from gpuwatch.tui.recording.format import Entry, Looked
from gpuwatch.tui.remote.backlog import MOST_ROWS, Backlog
from tests.unit.recording.a_run import START, a_run
from tests.unit.session.making import S


def steps_of(entries: list[Entry]) -> int:
    """Steps in them, merged ones counted."""
    delivered = [one for one in entries if isinstance(one, Delivered)]
    return sum(step.count for one in delivered for step in one.batch.steps)


def filled(seen: list[AnyObservation]) -> Backlog:
    """One that has seen all of this."""
    backlog = Backlog()
    for one in seen:
        backlog.take(one)
    return backlog


def everything(backlog: Backlog) -> list[Entry]:
    """What waits, frame by frame."""
    found: list[Entry] = []
    while not backlog.is_empty:
        found += backlog.next().entries
    return found


def test_a_fast_link_gets_all_of_it_in_order() -> None:
    backlog, found = Backlog(), list[Entry]()
    given = a_run(10.0)
    for one in given:
        backlog.take(one)
        found += backlog.next().entries
    assert found == given
    assert backlog.left_out == 0


def test_when_the_agent_judged_is_not_sent() -> None:
    backlog = filled([])
    backlog.take(Looked(t_ns=START))
    assert backlog.is_empty


def test_kinds_that_the_other_side_does_not_know_are_not_sent() -> None:
    backlog = Backlog(kinds=("stacks",))
    for one in a_run(12.0):
        backlog.take(one)
    found = everything(backlog)
    assert found
    assert all(isinstance(one, StacksSeen) for one in found)


def test_a_slow_link_gets_less_and_every_step_is_counted() -> None:
    given = a_run(20.0)
    backlog = filled(given)
    found = everything(backlog)
    assert backlog.left_out > 0
    assert len(found) < len(given)
    assert steps_of(found) == steps_of(list(given))
    rows = [len(one.batch.steps) for one in found if isinstance(one, Delivered)]
    assert max(rows) == 1


def test_what_comes_once_is_never_left_out() -> None:
    given = [*a_run(20.0), TargetEnded(t_ns=START + 21 * S)]
    found = everything(filled(given))
    assert isinstance(found[-1], TargetEnded)
    assert type(found[0]) is type(given[0])


def test_a_link_that_takes_nothing_costs_bounded_memory() -> None:
    minute = a_run(60.0)
    backlog = Backlog()
    rows = 0
    for _ in range(20):
        for one in minute:
            backlog.take(one)
        rows = max(rows, backlog.rows)
    assert rows <= MOST_ROWS + 100
    assert backlog.left_out > 0


def test_what_was_missed_is_sent_again_to_a_link_that_comes_back() -> None:
    given = a_run(30.0)
    backlog = Backlog()
    for one in given[:200]:
        backlog.take(one)
        backlog.next()
    before = 150
    for one in given[200:]:
        backlog.take(one)
    backlog.resume_after(before)
    left_out = backlog.left_out
    assert everything(backlog) == given[before:]
    assert backlog.left_out == left_out


def test_of_what_was_sent_a_minute_is_kept() -> None:
    backlog, given = Backlog(), a_run(150.0)
    for one in given:
        backlog.take(one)
        backlog.next()
    backlog.resume_after(0)
    found = everything(backlog)
    seconds = (found[-1].t_ns - found[0].t_ns) / S
    assert 55 < seconds <= 62
