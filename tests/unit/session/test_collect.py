"""The collector: each source at its own pace, and none takes the others down."""

import threading
import time
from typing import Any

import pytest

from gpuwatch.tui.model.observations import AnyObservation, Link
from gpuwatch.tui.session.collector import Collector
from gpuwatch.tui.session.live import LivePicture
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.findings import MissingSignal
from tests.unit.session.making import MS, S, session


class HeldClock:
    """Stands still until told."""

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

    def __init__(self, name: Any, interval_ms: int, fails: str = "") -> None:
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


def collector(*sources: FakeSource) -> tuple[Collector, HeldClock, Session]:
    store, _ = session()
    clock = HeldClock()
    return Collector(sources, store, clock), clock, store


def test_each_source_is_asked_at_its_own_pace() -> None:
    fast, slow = FakeSource("fast", 100), FakeSource("slow", 250)
    collect, clock, _ = collector(fast, slow)
    for clock.t_ns in range(0, 1001 * MS, 50 * MS):
        collect.turn()
    assert fast.asked_ms == list(range(0, 1001, 100))
    assert slow.asked_ms == [0, 250, 500, 750, 1000]


def test_a_turn_says_when_the_next_is_due() -> None:
    collect, clock, _ = collector(FakeSource("fast", 100), FakeSource("slow", 250))
    clock.t_ns = 10 * MS
    assert collect.turn() == 110 * MS


def test_after_a_stall_there_is_one_poll_and_no_burst() -> None:
    source = FakeSource("fast", 100)
    collect, clock, _ = collector(source)
    for clock.t_ns in (0, 5000 * MS, 5050 * MS, 5100 * MS, 5200 * MS):
        collect.turn()
    assert source.asked_ms == [0, 5000, 5100, 5200]


def test_a_source_that_fails_is_named_and_the_others_go_on() -> None:
    good = FakeSource("good", 100)
    refused, broken = FakeSource("nvml", 100, "open"), FakeSource("process", 100, "poll")
    collect, clock, store = collector(refused, broken, good)
    for clock.t_ns in (0, 100 * MS, 200 * MS):
        collect.turn()
    assert good.asked_ms == [0, 100, 200]
    assert broken.asked_ms == [0]
    assert (refused.closed, broken.closed, good.closed) == (1, 1, 0)
    assert store.snapshot(0, 0).status.missing == (
        MissingSignal("nvml", "PermissionError: not yours"),
        MissingSignal("process", "KeyError: 'x'"),
    )


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
    collect = Collector([source], store)
    collect.start()
    deadline = time.monotonic() + 5
    while len(source.asked_ms) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    collect.stop()
    collect.stop()
    assert len(source.asked_ms) >= 3
    assert source.closed == 1
    assert source.threads == {"collector"}


def test_stop_without_a_start_is_quiet() -> None:
    collect, _, _ = collector(FakeSource("feed", 5))
    collect.stop()


class Listening(Collector):
    """Remembers when it was asked to listen."""

    def __init__(self, watched: Session, clock: HeldClock) -> None:
        super().__init__([], watched, clock)
        self.listened_ns: list[int] = []
        self._held = clock

    def listen(self) -> None:
        self.listened_ns.append(self._held.t_ns)


@pytest.mark.parametrize("collector_first", [True, False])
def test_a_monitor_that_was_stopped_listens_before_it_looks(collector_first: bool) -> None:
    clock = HeldClock()
    watched, _ = session()
    collector = Listening(watched, clock)
    picture = LivePicture(watched, collector, clock)
    for t_ns in (0, S, 32 * S, 33 * S):
        clock.t_ns = t_ns
        if collector_first:
            collector.turn()
        picture.snapshot()
        collector.turn()
    assert collector.listened_ns == [32 * S]


def test_who_does_not_look_for_long_while_it_listens_was_not_stopped() -> None:
    clock = HeldClock()
    watched, _ = session()
    collector = Listening(watched, clock)
    picture = LivePicture(watched, collector, clock)
    picture.snapshot()
    for second in range(30):
        clock.t_ns = second * S
        collector.turn()
    picture.snapshot()
    assert collector.listened_ns == []
