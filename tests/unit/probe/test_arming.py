"""Which mark arms a process: one page and one publisher, however many threads train."""

from threading import Event, Thread

import pytest

from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire.marks import BACKWARD_ENTER, FETCH_ENTER
from tests.processes.monitored import LIMIT_S


def recorder(asked_of: list[int]) -> Recorder:
    """What it is asked is put into the list."""

    def asked(kind: int) -> bool:
        asked_of.append(kind)
        return kind == BACKWARD_ENTER

    return Recorder(asked, trip=_raise)


def _raise(error: Exception) -> None:
    raise error


def test_of_two_threads_whose_first_backward_comes_at_once_one_arms() -> None:
    arming, go_on = Event(), Event()
    asked = []

    def slowly(kind: int) -> bool:
        asked.append(kind)
        if len(asked) == 1:
            arming.set()
            go_on.wait(LIMIT_S)
        return True

    one = Recorder(slowly, trip=_raise)
    first = Thread(target=one.mark, args=(BACKWARD_ENTER,))
    first.start()
    assert arming.wait(LIMIT_S)
    one.mark(BACKWARD_ENTER)
    go_on.set()
    first.join()
    assert asked == [BACKWARD_ENTER]
    assert one.owner == first.ident
    assert len(one.tail(10)) == 2


def test_a_mark_that_does_not_arm_leaves_it_to_the_next() -> None:
    asked: list[int] = []
    one = recorder(asked)
    one.mark(FETCH_ENTER)
    one.mark(BACKWARD_ENTER)
    assert asked == [FETCH_ENTER, BACKWARD_ENTER]
    assert one.armed


def test_a_forked_child_arms_anew_even_where_its_parent_was_at_it() -> None:
    asked: list[int] = []
    one = recorder(asked)
    one.mark(BACKWARD_ENTER)
    one.forget()
    assert not one.armed
    one.mark(BACKWARD_ENTER)
    assert asked == [BACKWARD_ENTER] * 2


def test_a_mark_that_is_interrupted_as_it_arms_leaves_it_to_the_next() -> None:
    """Ctrl-C in the first backward of a fork that goes on: it was never watched."""
    asked: list[int] = []

    def interrupted(kind: int) -> bool:
        asked.append(kind)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return True

    one = Recorder(interrupted, trip=_raise)
    with pytest.raises(KeyboardInterrupt):
        one.mark(BACKWARD_ENTER)
    one.mark(BACKWARD_ENTER)
    assert one.armed
    assert len(one.tail(10)) == 2
