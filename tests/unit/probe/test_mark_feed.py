"""Marks on their way from the recorder to the page: each once."""

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.mark_feed import MarkFeed
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import marks, page
from gpuwatch.tui.sources.marks.reader import columns_of
from tests.unit.probe.held_clock import HeldClock


def test_a_mark_behind_another_may_come_after_the_turn_that_took_that() -> None:
    """It has the other's time. Lost, a step on the device's clock was lost with it."""
    clock = HeldClock()
    failures: list[Exception] = []
    recorder = Recorder(lambda _: True, failures.append, lambda: clock.now_ns)
    written = StatePage(Identity(None, None).as_json(page.HELLO_BYTES))
    feed = MarkFeed(recorder, written)

    def turn() -> None:
        feed.put(clock.now_ns)
        clock.work(1)

    recorder.mark(marks.FETCH_ENTER)
    turn()
    recorder.put_behind(marks.STAMPED, 7)
    turn()
    recorder.put_behind(marks.STAMPED, 8)
    recorder.mark(marks.FETCH_LEAVE)
    turn()
    turn()
    _, words = columns_of(b"".join(written.marks(0, feed.until)))
    assert [marks.kind_and_detail(word) for word in words] == [
        (marks.FETCH_ENTER, -1),
        (marks.STAMPED, 7),
        (marks.STAMPED, 8),
        (marks.FETCH_LEAVE, -1),
    ]
    assert failures == []
