"""What is watched is closed once, whatever comes when."""

from threading import Event

from gpuwatch.tui.errors import NoProcessError
from gpuwatch.tui.model.snapshot import Rank
from gpuwatch.tui.screens.switching import Switch
from tests.tui import rank_states
from tests.tui.fake_run import START, FakeRun, S, snapshot_at

RANK, NEXT = rank_states.eight_ranks(snapshot_at(START + 60 * S)).ranks[:2]


class Calls:
    """What it was called with, and when."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._come = Event()

    def __call__(self, why: str) -> None:
        self.words.append(why)
        self._come.set()

    def wait(self) -> list[str]:
        assert self._come.wait(5)
        return self.words


def test_the_other_is_shown_and_the_first_is_closed() -> None:
    first, other, calls = FakeRun(), FakeRun(), Calls()
    switch = Switch(first, lambda rank: other)
    assert switch.to(RANK, calls)
    assert calls.wait() == [""]
    assert switch.provider is other
    switch.close()
    assert (other.started, other.closed) == (1, 1)


def test_what_cannot_be_made_leaves_the_first() -> None:
    first, calls = FakeRun(), Calls()

    def make(rank: Rank) -> FakeRun:
        raise NoProcessError(f"no process {rank.pid}")

    switch = Switch(first, make)
    switch.to(RANK, calls)
    assert calls.wait() == [f"gpuwatch: no process {RANK.pid}"]
    assert (switch.provider, first.closed) == (first, 0)


def test_what_comes_after_the_end_is_closed_and_not_shown() -> None:
    first, other, calls = FakeRun(), FakeRun(), Calls()
    go, closed = Event(), Event()

    def make(rank: Rank) -> FakeRun:
        assert go.wait(5)
        return other

    other_close = other.close

    def close() -> None:
        other_close()
        closed.set()

    other.close = close  # type: ignore[method-assign]
    switch = Switch(first, make)
    assert switch.to(RANK, calls)
    assert not switch.to(NEXT, calls)  # one at a time: this one is not made
    switch.close()
    go.set()
    assert closed.wait(5)
    assert (first.closed, other.closed, calls.words) == (1, 1, [])


def test_without_another_to_be_made_nothing_happens() -> None:
    first = FakeRun()
    switch = Switch(first)
    assert not switch.is_possible
    assert not switch.to(RANK, Calls())
    assert switch.provider is first
