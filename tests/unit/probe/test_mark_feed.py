"""Marks on their way from the recorder to the page: each once."""

import pytest

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.mark_feed import MarkFeed
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import marks, page
from gpuwatch.tui.sources.marks.reader import columns_of
from tests.unit.probe.held_clock import HeldClock


class Fed:
    """A recorder whose marks go to a page."""

    def __init__(self) -> None:
        self.clock = HeldClock()
        self.failures: list[Exception] = []
        self.recorder = Recorder(lambda _: True, self.failures.append, lambda: self.clock.now_ns)
        self.page = StatePage(Identity(None, None).as_json(page.HELLO_BYTES))
        self.feed = MarkFeed(self.recorder, self.page)

    def turn(self) -> None:
        self.feed.put(self.clock.now_ns)
        self.clock.work(1)


def test_a_mark_behind_another_may_come_after_the_turn_that_took_that() -> None:
    """It has the other's time. Lost, a step on the device's clock was lost with it."""
    fed = Fed()
    recorder, turn = fed.recorder, fed.turn

    recorder.mark(marks.FETCH_ENTER)
    turn()
    recorder.put_behind(marks.STAMPED, 7)
    turn()
    recorder.put_behind(marks.STAMPED, 8)
    recorder.mark(marks.FETCH_LEAVE)
    turn()
    turn()
    _, words = columns_of(b"".join(fed.page.marks(0, fed.feed.until)))
    assert [marks.kind_and_detail(word) for word in words] == [
        (marks.FETCH_ENTER, -1),
        (marks.STAMPED, 7),
        (marks.STAMPED, 8),
        (marks.FETCH_LEAVE, -1),
    ]
    assert fed.failures == []


@pytest.mark.parametrize("mask", [None, (64, 50, 16, 50)])
def test_only_batches_with_padding_are_looked_at_more_often(mask: object) -> None:
    """All were: how long a batch's parts are stands behind its mask."""
    fed = Fed()
    seen = (4, 1, 64, "cpu", None, 64, mask, (1,))
    fed.recorder.look_with(lambda _: seen)
    fed.recorder.mark(marks.FETCH_LEAVE, (1,))
    fed.turn()
    assert fed.feed.sees_padding is (mask is not None)
    assert fed.failures == []
