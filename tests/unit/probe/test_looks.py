"""Looks at the training thread: true of their moment, bounded, and over when they are stopped."""

from threading import get_ident

import pytest

from gpuwatch.probe import clock
from gpuwatch.probe.deep import looks as module
from gpuwatch.probe.deep.looks import Looks

LIMIT_NS = 20_000_000_000


def look_until(count: int) -> Looks:
    """Of this thread, in this very function."""
    looks = Looks(get_ident())
    looks.start()
    until_ns = clock.now_ns() + LIMIT_NS
    while len(looks.taken) < count and clock.now_ns() < until_ns:
        pass
    looks.stop()
    return looks


def test_a_look_has_its_time_and_the_frames_innermost_first() -> None:
    began_ns = clock.now_ns()
    looks = look_until(3)
    ended_ns = clock.now_ns()
    assert all(began_ns <= t_ns <= ended_ns for t_ns, _ in looks.taken)
    places = looks.places()
    names = [[name for name, _, _ in place] for place in places]
    assert any("look_until" in place for place in names)
    first = next(place for place in names if "look_until" in place)
    caller = "test_a_look_has_its_time_and_the_frames_innermost_first"
    assert first.index("look_until") < first.index(caller)


def test_they_end_when_they_are_stopped() -> None:
    looks = look_until(1)
    assert looks._ended.is_set()


def test_they_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LOOKS", 2)
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    looks = look_until(2)
    assert looks._ended.wait(10)
    assert len(looks.taken) == 2
