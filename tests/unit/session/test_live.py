"""A live run: who reads never waits, and what goes wrong on its thread is shown."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.clock import now_ns
from gpuwatch.tui.errors import NoProcessError
from gpuwatch.tui.model.observations import AnyObservation, TargetEnded
from gpuwatch.tui.model.snapshot import unseen
from gpuwatch.tui.recording.tape import Tape
from gpuwatch.tui.session.live import Connection, LiveProvider
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.findings import Signal
from tests.unit.recording.files import HEADER
from tests.unit.session.making import MS, S, ScriptedEngine, delivered, steps

FIRST = unseen(48213, "train.py", 0, 1.8e9)
LIMIT_S = 10.0
"""No event within this is a failure; nothing here waits for it otherwise."""


class Source:
    """Delivers five steps at each poll, and holds up the thread while a test wants."""

    name: Signal = "feed"
    interval_ns = 20 * MS

    def __init__(self, polled: Callable[[int], None] = lambda _: None) -> None:
        self.polls = 0
        self.closed = 0
        self.ends = False
        self._polled = polled

    def open(self) -> None: ...

    def poll(self, now_ns: int) -> list[AnyObservation]:
        self._polled(self.polls)
        self.polls += 1
        if self.ends:
            return [TargetEnded(t_ns=now_ns)]
        first = 5 * self.polls - 4
        made = steps(5, first, 50.0 * self.polls, data_ms=5, forward_ms=5)
        return [delivered(made, now_ns / MS)]

    def close(self) -> None:
        self.closed += 1


Made = Callable[..., LiveProvider]


@pytest.fixture
def made() -> Iterator[Made]:
    """Makes providers, and closes them."""
    all_made: list[LiveProvider] = []

    def make(source: Source, engine: Any = None) -> LiveProvider:
        def connect(tape: Tape) -> Connection:
            session = Session(48213, "train.py", 0, engine or ScriptedEngine(), tape=tape)
            return Connection(session, [source], lambda _: HEADER)

        all_made.append(LiveProvider(FIRST, connect))
        return all_made[-1]

    yield make
    for provider in all_made:
        provider.close()


class Hold:
    """Holds up a source from a poll of its choice until it is let go."""

    def __init__(self) -> None:
        self.holds = threading.Event()
        self._go = threading.Event()

    def wait(self) -> None:
        """Called by the source."""
        self.holds.set()
        assert self._go.wait(LIMIT_S), "who read waited for the source"
        self.holds.clear()

    def let_go(self) -> None:
        assert self.holds.is_set()
        self._go.set()


def until(so: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def reads(provider: LiveProvider) -> None:
    """As a screen does, on a thread that is given up where it waits."""

    def read() -> None:
        provider.snapshot()
        provider.moment(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(LIMIT_S)
    assert not reader.is_alive()


def test_nothing_is_watched_before_the_first_read_after_the_start(made: Made) -> None:
    source = Source()
    provider = made(source)
    assert provider.snapshot() is FIRST
    provider.toggle_recording()
    assert provider.news == "", "there is nothing to record yet"
    provider.start()
    assert not provider._thread.ident
    assert source.polls == 0
    until(lambda: provider.snapshot().steps)
    provider.close()
    provider.close()
    assert source.closed == 1


def test_what_no_thread_was_left_for_is_let_go_of(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the process's page by then: one descriptor more for each time that it is tried."""

    def no_thread_is_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    source = Source()
    provider = made(source).connect()
    provider.start()
    monkeypatch.setattr(threading.Thread, "start", no_thread_is_left)
    with pytest.raises(RuntimeError):
        provider.snapshot()
    provider.close()
    provider.close()
    assert source.closed == 1


def test_a_process_that_has_ended_meanwhile_is_shown_as_ended() -> None:
    tries = []

    def connect(tape: Tape) -> Connection:
        tries.append(tape)
        raise NoProcessError("no process 48213")

    provider = LiveProvider(FIRST, connect)
    provider.start()
    until(lambda: provider.snapshot().status.state == "ended")
    assert len(tries) == 1, "and is not tried again"
    with pytest.raises(NoProcessError):
        LiveProvider(FIRST, connect).connect()
    provider.close()


def test_the_process_that_a_pid_comes_to_mean_is_watched_from_then_on(tmp_path: Path) -> None:
    """A rank that was spawned is taken for its launcher's worker until it trains. What is recorded
    stays of one process."""
    sources, moved = {4711: Source(), 48213: Source()}, threading.Event()
    pids = iter(sources)

    def connect(tape: Tape) -> Connection:
        pid = next(pids)
        session = Session(pid, "train.py", now_ns(), ScriptedEngine(), tape=tape)
        is_another = moved.is_set if pid == 4711 else lambda: False
        return Connection(session, [sources[pid]], lambda _: HEADER, is_another)

    provider = LiveProvider(FIRST, connect).connect()
    provider.recording.begin(tmp_path / "launcher.gpuwatch", overwrite=True)
    tape = provider.recording.tape
    provider.start()
    until(lambda: provider.moment(None).snapshot.steps)
    moved.set()
    polls = sources[4711].polls
    until(lambda: sources[4711].polls > polls + 2)
    assert provider.snapshot().pid == 4711
    attached_s = provider.snapshot().attached_s
    provider.toggle_recording()
    until(lambda: provider.snapshot().pid == 48213 and provider.snapshot().steps)
    assert sources[4711].closed == 1
    assert provider.snapshot().attached_s >= attached_s, "a duration goes on"
    assert provider.recording.tape is not tape
    assert provider.news == "48213 trains: it is watched from here on"
    provider.close()
    assert sources[48213].closed == 1


def test_what_has_ended_is_not_left_for_another_process() -> None:
    """Rank 0 ends, and its launcher evaluates: the last words and the history stay."""
    source, moved = Source(), threading.Event()

    def connect(tape: Tape) -> Connection:
        session = Session(4711, "train.py", now_ns(), ScriptedEngine(), tape=tape)
        return Connection(session, [source], lambda _: HEADER, moved.is_set)

    provider = LiveProvider(FIRST, connect).connect()
    provider.start()
    until(lambda: provider.moment(None).snapshot.steps)
    source.ends = True
    until(lambda: provider.snapshot().status.state == "ended")
    moved.set()
    polls = source.polls
    until(lambda: source.polls > polls + 2)
    assert source.closed == 0
    assert "trains" not in provider.news
    provider.close()


def test_a_read_does_not_wait_while_a_source_holds_up_the_thread(made: Made) -> None:
    hold = Hold()
    provider = made(Source(lambda polls: hold.wait() if polls == 5 else None))
    provider.start()
    provider.snapshot()
    assert hold.holds.wait(LIMIT_S)
    last = provider.snapshot()
    reads(provider)
    assert provider.snapshot() is last
    hold.let_go()
    until(lambda: provider.snapshot() is not last)


def test_a_read_does_not_wait_while_the_lock_is_held(made: Made) -> None:
    provider = made(Source())
    provider.start()
    until(lambda: provider.snapshot().steps)
    with provider._lock:
        reads(provider)


def test_a_read_does_not_wait_after_the_monitor_was_suspended(made: Made) -> None:
    class Clock:
        """Jumps by half a minute, as time does for a process that was stopped."""

        jump_ns = 0

        def now_ns(self) -> int:
            return time.perf_counter_ns() + self.jump_ns

        def now_unix(self) -> float:
            return 1.8e9

        def own_cpu_ns(self) -> int:
            return 0

    clock, hold = Clock(), Hold()
    provider = made(Source(lambda _: hold.wait() if clock.jump_ns else None))
    provider._clock = clock
    provider.start()
    until(lambda: provider.snapshot().steps)
    before = provider.snapshot()
    clock.jump_ns = 30 * S
    assert hold.holds.wait(LIMIT_S)
    reads(provider)
    hold.let_go()
    until(lambda: provider.snapshot().t_ns > before.t_ns + 30 * S)
    assert provider.snapshot().status.state == "live"


def test_a_mistake_on_the_thread_is_raised_to_who_reads(made: Made) -> None:
    class Broken(ScriptedEngine):
        def judge(self, window: Any) -> Any:
            raise ZeroDivisionError("a rule failed")

    provider = made(Source(), Broken())
    provider.start()

    def fails() -> bool:
        try:
            provider.snapshot()
        except ZeroDivisionError:
            return True
        return False

    until(fails)


def test_steps_that_come_while_others_read_are_all_there(made: Made) -> None:
    source = Source()
    provider = made(source)
    provider.start()
    seen = [0]

    def all_there() -> bool:
        seen.append(len(provider.snapshot().recent))
        return seen[-1] >= 200

    until(all_there)
    assert sorted(seen) == seen
    numbers = [row.number for row in provider.snapshot().recent]
    assert numbers == list(range(numbers[0], numbers[0] + 200))


def test_a_recording_is_in_the_next_snapshot_and_ends_with_the_run(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    provider = made(Source())
    provider.start()
    until(lambda: provider.snapshot().steps)
    provider.toggle_recording()
    assert provider.snapshot().status.recording is not None
    assert provider.news.startswith("recording to gpuwatch-train-48213-")
    until(lambda: list(tmp_path.iterdir()))
    provider.close()
    assert provider.news.startswith("recorded gpuwatch-train-48213-")
    assert provider.recording.fault is None
