"""The collector: sources at their own pace, a verdict a second, snapshots for who reads."""

import threading
import time

import pytest

from gpuwatch.tui.model.observations import AnyObservation, Link, TargetEnded
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.format import Entry, Looked
from gpuwatch.tui.recording.tape import Tape
from gpuwatch.tui.session.collector import Collector
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import MissingSignal, Signal
from tests.unit.session.making import MS, S, ScriptedEngine, delivered, session, step


class HeldClock:
    """Stands still until moved."""

    def __init__(self) -> None:
        self.t_ns = 0
        self.cpu_ns = 0

    def now_ns(self) -> int:
        return self.t_ns

    def now_unix(self) -> float:
        return 0.0

    def own_cpu_ns(self) -> int:
        return self.cpu_ns


class FakeSource:
    """Notes when it was asked and on which thread."""

    def __init__(self, name: Signal, interval_ms: int, fails: str = "") -> None:
        self.name = name
        self.interval_ns = interval_ms * MS
        self.asked_ms: list[int] = []
        self.threads: set[str] = set()
        self.closed = 0
        self._fails = fails

    def open(self) -> None:
        self.threads.add(threading.current_thread().name)
        if self._fails == "open":
            raise PermissionError("not yours")

    def poll(self, now_ns: int) -> list[AnyObservation]:
        self.threads.add(threading.current_thread().name)
        self.asked_ms.append(now_ns // MS)
        if self._fails == "poll":
            raise KeyError("x")
        return [Link(t_ns=now_ns, state="connected")]

    def close(self) -> None:
        self.threads.add(threading.current_thread().name)
        self.closed += 1


def ignored(snapshot: Snapshot) -> None:
    """Nobody reads."""


def collector(*sources: FakeSource) -> tuple[Collector, HeldClock, Session]:
    store, _ = session()
    clock = HeldClock()
    return Collector(sources, store, ignored, clock=clock), clock, store


def test_each_source_is_asked_at_its_own_pace() -> None:
    fast, slow = FakeSource("feed", 100), FakeSource("page", 250)
    collect, clock, _ = collector(fast, slow)
    for clock.t_ns in range(0, 1001 * MS, 50 * MS):
        collect.turn()
    assert fast.asked_ms == list(range(0, 1001, 100))
    assert slow.asked_ms == [0, 250, 500, 750, 1000]


def test_a_turn_shows_when_the_next_is_due() -> None:
    collect, clock, _ = collector(FakeSource("feed", 100), FakeSource("page", 250))
    clock.t_ns = 10 * MS
    assert collect.turn() == 110 * MS


def test_after_a_stall_there_is_one_poll_and_no_burst() -> None:
    source = FakeSource("feed", 100)
    collect, clock, _ = collector(source)
    for clock.t_ns in (0, 5000 * MS, 5050 * MS, 5100 * MS, 5200 * MS):
        collect.turn()
    assert source.asked_ms == [0, 5000, 5100, 5200]


def test_a_source_that_fails_is_named_and_the_others_go_on() -> None:
    good = FakeSource("gpm", 100)
    refused, broken = FakeSource("nvml", 100, "open"), FakeSource("process", 100, "poll")
    collect, clock, store = collector(refused, broken, good)
    for clock.t_ns in (0, 100 * MS, 200 * MS):
        collect.turn()
    assert good.asked_ms == [0, 100, 200]
    assert broken.asked_ms == [0]
    assert (refused.closed, broken.closed, good.closed) == (1, 0, 0)
    assert store.snapshot(0, 0).status.missing == (
        MissingSignal("nvml", "PermissionError: not yours"),
        MissingSignal("process", "KeyError: 'x'"),
    )


@pytest.mark.parametrize("fails", ["open", "poll"])
def test_a_source_that_has_failed_is_asked_again_until_it_is_there(fails: str) -> None:
    source = FakeSource("process", 100, fails)
    collect, clock, store = collector(source)
    for clock.t_ns in range(0, 10_000 * MS, 50 * MS):
        if clock.t_ns == 6_000 * MS:
            source._fails = ""
        collect.turn()
        if clock.t_ns == 5_950 * MS:
            (missing,) = store.snapshot(0, 0).status.missing
            assert missing.signal == "process"
    seen = [at for at in source.asked_ms if at >= 6_000]
    assert seen[:3] == [7_000, 7_100, 7_200], "after 1, 2 and 4 s"
    assert store.snapshot(0, 0).status.missing == ()


def test_a_source_that_fails_for_good_is_asked_less_and_less() -> None:
    source = FakeSource("process", 100, "poll")
    collect, clock, _ = collector(source)
    for clock.t_ns in range(0, 400 * S, 500 * MS):
        collect.turn()
    assert [at // 1000 for at in source.asked_ms] == [
        0,
        1,
        3,
        7,
        15,
        31,
        63,
        123,
        183,
        243,
        303,
        363,
    ]


def test_the_monitors_own_cpu_is_on_the_picture() -> None:
    collect, clock, store = collector()
    collect.turn()
    assert store.snapshot(0, 0).status.monitor_cpu_percent is None
    clock.t_ns, clock.cpu_ns = 2 * S, 100 * MS
    collect.turn()
    assert store.snapshot(0, 0).status.monitor_cpu_percent == 5.0


def test_one_thread_opens_polls_and_closes() -> None:
    source = FakeSource("feed", 5)
    store, _ = session()
    collect, stop = Collector([source], store, ignored), threading.Event()
    thread = threading.Thread(target=collect.run, args=(stop,), name="collector")
    thread.start()
    deadline = time.monotonic() + 5
    while len(source.asked_ms) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    stop.set()
    thread.join()
    assert len(source.asked_ms) >= 3
    assert source.closed == 1
    assert source.threads == {"collector"}


def test_a_stop_before_the_first_turn_closes_what_was_not_opened_yet() -> None:
    source = FakeSource("feed", 5)
    collect, _, _ = collector(source)
    stop = threading.Event()
    stop.set()
    collect.run(stop)
    assert (source.asked_ms, source.closed) == ([], 1)


class Watched:
    """A collector with a held clock: what it publishes, what it judges and what a recording has."""

    def __init__(self, *sources: FakeSource, is_read: bool = True) -> None:
        self.clock = HeldClock()
        self.is_read = is_read
        self.published: list[Snapshot] = []
        self.recorded: list[Entry] = []
        self.engine = ScriptedEngine()
        tape = Tape()
        tape.hand_over(self.recorded.append)
        self.session = Session(48213, "train.py", 0, self.engine, tape=tape)
        self.collect = Collector(
            sources or (FakeSource("feed", 100),),
            self.session,
            self.published.append,
            lambda: self.is_read,
            self.clock,
        )

    def turn_until(self, until_ms: int) -> None:
        """A turn every 50 ms."""
        for at_ms in range(self.clock.t_ns // MS, until_ms + 1, 50):
            self.clock.t_ns = at_ms * MS
            self.collect.turn()

    @property
    def judged_ms(self) -> list[int]:
        return [window.now_ns // MS for window in self.engine.windows]


def test_verdicts_go_on_and_are_recorded_while_nothing_is_drawn_for_20_s() -> None:
    watched = Watched(is_read=False)
    watched.turn_until(20_000)
    every_second = list(range(0, 20_001, 1_000))
    assert watched.judged_ms == every_second
    assert [one.t_ns // MS for one in watched.recorded if isinstance(one, Looked)] == every_second
    assert [one.t_ns // MS for one in watched.published] == every_second, "the newest is ready"


def test_since_step_does_not_depend_on_the_drawing() -> None:
    def verdicts(is_read: bool) -> list[tuple[str, int | None]]:
        watched, seen = Watched(is_read=is_read), []
        watched.session = Session(48213, "train.py", 0, Engine())
        watched.collect = Collector(
            [FakeSource("feed", 100)],
            watched.session,
            watched.published.append,
            lambda: watched.is_read,
            watched.clock,
        )
        for number in range(1, 400):
            parts = {"data_ms": 70.0, "forward_ms": 30.0}
            made = step(number, 100.0 * number, **parts)
            watched.session.ingest(delivered([made]))
            watched.turn_until(100 * number + 100)
        for snapshot in watched.published:
            seen.append((snapshot.verdict.finding.kind, snapshot.verdict.since_step))
        return list(dict.fromkeys(seen))

    drawn = verdicts(is_read=True)
    assert drawn == verdicts(is_read=False)
    assert ("input", drawn[-1][1]) == drawn[-1]


def test_a_turn_that_comes_late_does_not_delay_the_next_verdict() -> None:
    watched = Watched()
    for at_ms in (0, 1_090, 2_010, 2_100, 3_050, 4_020):
        watched.clock.t_ns = at_ms * MS
        watched.collect.turn()
    assert watched.judged_ms == [0, 1_090, 2_010, 3_050, 4_020]


def test_who_reads_gets_four_snapshots_a_second_and_who_does_not_one() -> None:
    watched = Watched()
    watched.turn_until(2_000)
    assert [one.t_ns // MS for one in watched.published] == list(range(0, 2_001, 250))
    watched.is_read = False
    watched.turn_until(4_000)
    assert [one.t_ns // MS for one in watched.published][9:] == [3_000, 4_000]


def test_a_run_that_ended_is_judged_once_more_and_at_once() -> None:
    watched = Watched()
    watched.turn_until(1_400)
    watched.session.ingest(TargetEnded(t_ns=1_400 * MS, how="exited"))
    watched.turn_until(5_000)
    assert watched.judged_ms == [0, 1_000, 1_400]
    assert watched.published[-1].status.state == "ended"


def test_a_monitor_that_was_stopped_reads_its_sources_before_it_judges() -> None:
    source = FakeSource("feed", 100)
    watched = Watched(source)
    watched.turn_until(1_000)
    watched.clock.t_ns = 32_000 * MS
    watched.turn_until(34_000)
    assert [at for at in source.asked_ms if 1_000 < at < 32_700] == [*range(32_000, 32_700, 100)]
    later = [one.t_ns // MS for one in watched.published if one.t_ns > 1_000 * MS]
    assert later[0] == 32_600
    assert [at for at in watched.judged_ms if at > 1_000] == [32_600, 33_600]


def test_a_stop_in_the_middle_of_a_turn_is_a_stop_too() -> None:
    class Stopped(FakeSource):
        """The process is stopped while this is asked."""

        def poll(self, now_ns: int) -> list[AnyObservation]:
            if now_ns == 2_000 * MS:
                watched.clock.t_ns += 30 * S
            return super().poll(now_ns)

    watched = Watched(Stopped("feed", 100))
    watched.turn_until(2_000)
    assert watched.judged_ms == [0, 1_000]
    watched.turn_until(33_000)
    assert watched.judged_ms == [0, 1_000, 32_600]
