"""A turn of the publisher, without its thread, and what the monitor makes of it."""

import sys
from collections import deque
from threading import Event

import pytest

from gpuwatch.probe import serve
from gpuwatch.probe.device.rate_limit import RateLimiter
from gpuwatch.probe.device.stamper import Report
from gpuwatch.probe.encoding import encode_marks
from gpuwatch.probe.recorder import ENTRIES
from gpuwatch.probe.serve import (
    BEGINNING_NS,
    BEGINNING_TURN_S,
    MOST_REPORTS,
    PEEK_S,
    TURN_S,
    UNWATCHED_TURN_S,
)
from gpuwatch.probe.wire import marks, page
from gpuwatch.tui import messages, requests
from gpuwatch.tui.sources.marks.reader import ROWS_A_TURN, ReplyReader, columns_of
from gpuwatch.tui.steps import Batch
from tests.unit.probe.served import served, train


def rows_of(steps: int) -> list[int]:
    """How many steps each row of a turn holds in which so many plain ones were completed."""
    server, recorder, reported = served()
    reader = ReplyReader()
    train(recorder, 10)
    reported.subscribe()
    server.turn()
    train(recorder, steps)
    server.turn()
    replies = [reader.read(frame) for frame in reported.sent]
    last = replies[-1]
    assert isinstance(last, Batch)
    return [step.count for step in last.steps]


def test_as_many_steps_as_a_turn_has_rows_come_one_by_one() -> None:
    assert rows_of(ROWS_A_TURN - 5) == [1] * (ROWS_A_TURN - 5)


def test_more_steps_than_rows_are_put_together_evenly() -> None:
    rows = rows_of(4 * ROWS_A_TURN)
    assert sum(rows) == 4 * ROWS_A_TURN
    assert ROWS_A_TURN // 2 < len(rows) <= ROWS_A_TURN
    assert max(rows) <= 6


def test_who_comes_late_has_the_ring_and_the_right_numbers() -> None:
    server, recorder, reported = served()
    for _ in range(8):
        train(recorder, 1_000)
        server.turn()
    reported.subscribe()
    server.turn()
    _, batch = map(ReplyReader().read, reported.sent)
    assert isinstance(batch, Batch)
    assert batch.lost_marks == 0
    assert batch.steps[-1].number == 8_000 - 1
    reported_of = sum(step.count for step in batch.steps)
    assert reported_of > marks.RING // 6 - 20
    assert batch.steps[0].number - batch.steps[0].count == 7_999 - reported_of
    assert {(step.end_ns - step.start_ns) // step.count for step in batch.steps} == {6_000}


def test_ten_thousand_steps_a_second_are_sent_without_a_loss() -> None:
    server, recorder, reported = served()
    reader = ReplyReader()
    reported.subscribe()
    server.turn()
    counted = lost = 0
    for _ in range(8):
        train(recorder, 2_500)
        server.turn()
    for frame in reported.sent:
        reply = reader.read(frame)
        if isinstance(reply, Batch):
            counted += sum(step.count for step in reply.steps)
            lost = reply.lost_marks
    assert (counted, lost) == (8 * 2_500 - 1, 0)


def test_marks_that_were_overrun_are_missed() -> None:
    server, recorder, reported = served()
    reader = ReplyReader()
    train(recorder, 10)
    reported.subscribe()
    server.turn()
    train(recorder, 10_000)
    server.turn()
    batch = [reader.read(frame) for frame in reported.sent][-1]
    assert isinstance(batch, Batch)
    assert batch.lost_marks == server._page.words[page.WORD_LOST_MARKS] == 1
    assert batch.open.since_ns == recorder.entries[-2]
    assert sum(step.count for step in batch.steps) > ENTRIES // 12 - 3


def test_a_time_whose_word_is_yet_to_come_waits_for_the_next_turn() -> None:
    server, recorder, _ = served()
    train(recorder, 2)
    recorder.put(13_000)
    server.turn()
    assert (server._feed.until, recorder.newest()) == (12, (12_000, marks.OPTIMIZER_LEAVE))
    recorder.put(marks.word_of(marks.FETCH_ENTER, 7))
    server.turn()
    assert (server._feed.until, recorder.newest()) == (13, (13_000, marks.FETCH_ENTER))


def test_the_page_shows_what_a_devices_event_stands_behind() -> None:
    """A first backward of 5 s on an H100, behind an evaluation: "in other", the page said."""
    server, recorder, _ = served()
    recorder.put(13_000)
    recorder.put(marks.word_of(marks.BACKWARD_ENTER))
    recorder.put_behind(marks.STAMPED, 7)
    server.turn()
    assert recorder.newest() == (13_000, marks.BACKWARD_ENTER)
    assert page.unpack_open(server._page.words[page.WORD_OPEN], 13_000)[0] == marks.BACKWARD_ENTER
    recorder.put(14_000)
    server.turn()
    assert recorder.newest() == (13_000, marks.BACKWARD_ENTER)


def test_marks_of_two_threads_between_each_other_are_put_in_pairs() -> None:
    _, recorder, _ = served()
    for entry in (5, 6, -marks.BACKWARD_ENTER, -marks.OPTIMIZER_INSIDE, 7, -marks.BACKWARD_LEAVE):
        recorder.put(entry)
    words = [-marks.BACKWARD_ENTER, -marks.OPTIMIZER_INSIDE, -marks.BACKWARD_LEAVE]
    tail = recorder.tail(100).tolist()
    assert (tail[0::2], tail[1::2]) == ([5, 6, 7], words)


def test_a_time_whose_hook_was_cut_off_before_its_word_shifts_no_other() -> None:
    _, recorder, _ = served()
    for entry in (5, -marks.BACKWARD_ENTER, 6, 7, -marks.BACKWARD_LEAVE, 8, -marks.STEP):
        recorder.put(entry)
    words = [-marks.BACKWARD_ENTER, -marks.BACKWARD_LEAVE, -marks.STEP]
    tail = recorder.tail(100).tolist()
    assert (tail[0::2], tail[1::2]) == ([5, 7, 8], words)


def test_the_faster_the_loop_the_shorter_the_turn() -> None:
    server, recorder, reported = served()
    server.turn()
    assert server.turn_s == UNWATCHED_TURN_S
    train(recorder, 2_000)
    server._feed._turned_ns -= 100_000_000  # type: ignore[operator]
    server.turn()
    assert server.turn_s < UNWATCHED_TURN_S
    reported.subscribe()
    server._feed._turned_ns -= 10**10
    server.turn()
    assert server.turn_s == BEGINNING_TURN_S
    server._greeted_ns -= BEGINNING_NS
    server.turn()
    assert server.turn_s == TURN_S


def test_who_comes_ends_the_rest_and_soon_has_steps_of_the_device() -> None:
    server, recorder, reported = served()
    server.turn()
    waits: list[float] = []

    def wait(stop: Event, seconds: float) -> None:
        waits.append(seconds)
        reported.has_newcomer = True

    server.wait = wait  # type: ignore[method-assign]
    stop = Event()
    server.rest(stop)
    assert waits == [PEEK_S]
    stamper = Granting()
    limiter = server._rate_limiter = RateLimiter(recorder, lambda: None)
    limiter.stamper = stamper  # type: ignore[assignment]
    recorder.put(0)
    recorder.put(marks.word_of(marks.BACKWARD_ENTER))
    reported.subscribe()
    server.turn()
    assert stamper.granted, "in the turn in which it came"


class Granting:
    """In place of the stamper: what it was granted."""

    def __init__(self) -> None:
        self.granted = self.spent_ns = self.stamped = self.dropped = self.near_ns = 0
        self.reports: deque[Report] = deque()
        self.switched: deque[tuple[int, bool]] = deque()

    def grant(self, steps: int) -> None:
        self.granted += steps


def test_a_loop_that_begins_faster_than_a_turn_is_long_ends_the_rest() -> None:
    server, recorder, _ = served()
    server.turn()
    waits: list[float] = []

    def wait(stop: Event, seconds: float) -> None:
        waits.append(seconds)
        train(recorder, ENTRIES // 4 // 6 + 1)

    server.wait = wait  # type: ignore[method-assign]
    server.rest(Event())
    assert waits == [PEEK_S]
    server.turn()
    server.wait = lambda stop, seconds: waits.append(seconds)  # type: ignore[method-assign]
    waits.clear()
    server.rest(Event())
    assert sum(waits) == pytest.approx(server.turn_s)


def test_steps_whose_marks_are_lost_are_counted_by_the_pace_of_the_others() -> None:
    server, recorder, _ = served()
    train(recorder, 100)
    server.turn()
    train(recorder, 20_000)
    server.turn()
    assert server._page.words[page.WORD_LOST_MARKS] == 1
    assert abs(server._page.words[page.WORD_STEPS] - 20_099) <= 20


def test_marks_lost_before_the_first_turn_took_no_longer_than_there_was() -> None:
    server, recorder, _ = served()
    recorder.put(server._feed._made_ns)
    recorder.put(marks.word_of(marks.BACKWARD_ENTER))
    train(recorder, 20_000)
    server.turn()
    assert abs(server._page.words[page.WORD_STEPS] - 20_000) <= 20


def test_a_fork_starts_behind_its_parents_marks() -> None:
    _, recorder, _ = served()
    train(recorder, 10)
    recorder.forget()
    server, _, reported = served(recorder)
    train(recorder, 5)
    reported.subscribe()
    server.turn()
    (body,) = (
        one.body
        for one in map(messages.decode_reply, reported.sent)
        if isinstance(one, messages.Marks)
    )
    assert len(body) == 30 * marks.MARK_BYTES


def test_what_a_dropped_message_held_is_sent_again() -> None:
    """A monitor that had not read for a while missed the names of phases for good."""
    server, recorder, reported = served()
    reported.subscribe()
    server.turn()
    reported.reads = False
    recorder.mark(marks.PHASE_ENTER, "augment", sight=recorder.name)
    recorder.mark(marks.PHASE_LEAVE, "augment", sight=recorder.name)
    server.turn()
    reported.reads = True
    server.turn()
    last = messages.decode_reply(reported.sent[-1])
    assert isinstance(last, messages.Marks)
    assert "augment" in last.names


def test_who_wants_no_history_gets_what_is_new() -> None:
    server, recorder, reported = served()
    train(recorder, 100)
    reported.subscribe(history=False)
    server.turn()
    train(recorder, 1)
    server.turn()
    heads = [messages.decode_reply(frame) for frame in reported.sent]
    bodies = [columns_of(one.body) for one in heads if isinstance(one, messages.Marks)]
    assert [len(words) for _, words in bodies] == [1, 6]


def test_what_the_device_reported_is_kept_for_who_comes_and_bounded() -> None:
    server, _, reported = served()
    seen: Report = "allocated", (0, 0, None, 0, 1, 2, 3, 4, 5, 6, None, None, None, 0, None)
    server._reports.extend([seen] * 10_000)
    reported.subscribe()
    server.turn()
    server.turn()
    heads = [messages.decode_reply(frame) for frame in reported.sent]
    counts = [len(one.allocated) for one in heads if isinstance(one, messages.Marks)]
    assert counts == [MOST_REPORTS, 0]


def test_the_training_thread_itself_makes_the_device_s_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, recorder, _ = served()
    monkeypatch.setattr(serve, "uses_accelerator", lambda: True)
    server.turn()
    assert recorder.extra is not None
    recorder.mark(marks.FETCH_LEAVE)
    assert server._rate_limiter is not None
    assert not recorder.stamps, "until the rate limiter grants some"
    server.turn()
    assert server._rate_limiter.stamper is None, "nothing has begun to use a device"


def test_the_message_begins_with_a_line() -> None:
    assert (encode_marks((1, 2)) + b"\n\0").startswith(b'["marks",1,2]\n\n')


def test_who_has_not_the_key_is_not_answered() -> None:
    server, _, reported = served()
    for key in ("", "another", "the key ", "k\u00e9y\u00e9\u00e9"):
        reported.subscribe(key=key)
    server.turn()
    assert reported.sent == []
    assert not server._recorder.watched
    assert server._refused == 4
    reported.subscribe()
    server.turn()
    assert server._recorder.watched


def test_a_monitor_whose_connection_is_closed_is_forgotten_at_once() -> None:
    server, recorder, reported = served()
    reported.subscribe()
    server.turn()
    assert recorder.watched
    reported.pid_of = lambda peer: None  # type: ignore[method-assign, assignment, return-value]
    server.turn()
    assert not recorder.watched


def test_what_reads_the_flight_recorder_is_loaded_by_the_training_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The publisher imports nothing: who asks first waits for the next mark."""
    name = "gpuwatch.probe.collectives"
    monkeypatch.delitem(sys.modules, name, raising=False)
    server, recorder, reported = served()
    asked = requests.AskCollectives(0, False, reported.key)
    reported.asked.append((b"a", messages.encode_message(asked)))
    server.turn()
    assert name not in sys.modules
    assert reported.sent == []
    recorder.mark(marks.BACKWARD_ENTER)
    assert name in sys.modules
    assert recorder._collect is None
    server.turn()
    (answer,) = map(messages.decode_reply, reported.sent)
    assert isinstance(answer, messages.Collectives)
    assert recorder._collect is None
