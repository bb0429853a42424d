"""The probe's own look at its threads: when there is one, what is in it, how much it can be."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpuwatch.probe.encoding import encode_dump
from gpuwatch.probe.peers import (
    AGAIN_NS,
    MOST_FRAMES,
    MOST_TEXT,
    MOST_THREADS,
    OFF,
    QUIET_NS,
    Dumps,
    Peer,
    ThreadStack,
    dump,
)
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire import marks
from gpuwatch.tui.messages import MAX_FRAME_BYTES

S = 1_000_000_000


class Held:
    """A thread that stands in `down`, so many calls deep, until it is let go."""

    def __init__(self, name: str, deep: int = 0) -> None:
        self.deep = deep
        self.there, self.go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.down, args=(deep,), name=name)

    def down(self, deep: int) -> None:
        if deep:
            self.down(deep - 1)
        else:
            self.there.set()
            self.go.wait()


@contextmanager
def held(*all_of_them: Held) -> Iterator[None]:
    for one in all_of_them:
        one.thread.start()
    for one in all_of_them:
        one.there.wait()
    try:
        yield
    finally:
        for one in all_of_them:
            one.go.set()
            one.thread.join()


def recorder(marked_ns: int) -> Recorder:
    made = Recorder(arm=lambda _: True, trip=lambda error: None, now_ns=lambda: marked_ns)
    made.mark(marks.FETCH_ENTER)
    return made


def named(threads: list[ThreadStack], name: str) -> ThreadStack:
    return next(thread for thread in threads if thread[0] == name)


def seen_by_another_thread(owner: int = 0) -> "list[ThreadStack]":
    """As the publisher sees it, which leaves itself out."""
    reported: list[ThreadStack] = []
    looks = threading.Thread(target=lambda: reported.extend(dump(owner, 0)[1]), name="looks")
    looks.start()
    looks.join()
    return reported


def test_every_thread_but_the_one_that_looks_with_the_training_thread_first() -> None:
    with held(one := Held("holder")):
        threads = seen_by_another_thread()
        by_owner = seen_by_another_thread(one.thread.ident or 0)
    assert threads[0][0] == "MainThread"
    assert [thread[1] for thread in threads] == [True] + [False] * (len(threads) - 1)
    assert "looks" not in [thread[0] for thread in threads]
    assert by_owner[0][:2] == ("holder", True)


def test_frames_are_reported_from_the_outermost_with_their_lines() -> None:
    with held(Held("holder")):
        frames = named(seen_by_another_thread(), "holder")[2]
    functions = [function.rpartition(".")[2] for function, _, _ in frames]
    assert functions[-3:] == ["down", "wait", "wait"]
    assert frames[-3][1] == __file__
    line = Held.down.__code__.co_firstlineno + 5
    assert frames[-3][2] == line


def test_deep_stacks_lose_their_outer_end_visibly() -> None:
    with held(Held("deep", MOST_FRAMES)):
        deep = named(seen_by_another_thread(), "deep")
    assert (len(deep[2]), deep[3]) == (MOST_FRAMES, True)
    assert deep[2][-1][0].endswith("wait")


def test_the_largest_dump_fits_into_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    some = sys._getframe()
    monkeypatch.setattr(threading, "_active", {})
    many = {**dict.fromkeys(range(500), some), threading.get_ident(): some}
    monkeypatch.setattr(sys, "_current_frames", lambda: many)
    seen = dump(0, 0)
    assert (len(seen[1]), seen[2]) == (MOST_THREADS, 500 - MOST_THREADS)
    widest = "\N{SNAKE}" * MOST_TEXT
    full: ThreadStack = (widest, False, [(widest, widest, 10**6)] * MOST_FRAMES, True)
    seen[1][:] = [full] * MOST_THREADS
    assert len(encode_dump(seen)) < MAX_FRAME_BYTES


def test_where_python_does_not_name_its_threads_their_numbers_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with held(one := Held("holder")):
        monkeypatch.delattr(threading, "_active")
        reported = dump(one.thread.ident or 0, 0)[1]
        monkeypatch.undo()
    assert reported[0][0] == f"thread {one.thread.ident}"


def test_nothing_that_a_frame_holds_is_kept_alive() -> None:
    with held(one := Held("holder")):
        assert one.thread.ident is not None
        frame = sys._current_frames()[one.thread.ident]
        before = sys.getrefcount(frame)
        reported = dump(0, 0)
        assert sys.getrefcount(frame) == before
        assert reported[1]


@pytest.mark.parametrize(("since_ns", "answered"), [(QUIET_NS - 1, False), (QUIET_NS, True)])
def test_only_while_no_mark_comes(since_ns: int, answered: bool) -> None:
    dumps = Dumps(recorder(7 * S))
    assert (dumps.for_peer(Peer(0, 1), 7 * S + since_ns) is not None) is answered


def test_who_has_not_subscribed_is_sent_nothing() -> None:
    assert Dumps(recorder(0)).for_peer(None, 60 * S) is None


def test_one_look_serves_all_monitors_for_a_while() -> None:
    dumps, one, other = Dumps(recorder(0)), Peer(0, 1), Peer(0, 2)
    first = dumps.for_peer(one, 60 * S)
    assert first is not None
    assert dumps.for_peer(one, 60 * S + AGAIN_NS - 1) is None, "it has just got it"
    assert dumps.for_peer(other, 60 * S + AGAIN_NS - 1) is first
    again = dumps.for_peer(one, 60 * S + AGAIN_NS)
    assert again is not None
    assert again[0] == 60 * S + AGAIN_NS


def test_a_look_of_before_the_last_mark_is_not_reported_again() -> None:
    marked = recorder(0)
    dumps = Dumps(marked)
    assert dumps.for_peer(Peer(0, 1), 60 * S) is not None
    marked.now_ns = lambda: 61 * S
    marked.mark(marks.FETCH_LEAVE)
    later = dumps.for_peer(Peer(0, 2), 61 * S + QUIET_NS)
    assert later is not None
    assert later[0] == 61 * S + QUIET_NS


def test_it_can_be_turned_off_and_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    reported = Dumps(recorder(0)).for_peer(Peer(0, 1), 60 * S)
    assert reported is not None
    assert (reported[1], reported[3]) == ([], OFF)
