"""Reading the flight recorder: by whom, when, how often, and what there is instead."""

import ctypes
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.probe import clock
from gpuwatch.probe.collectives import _RELAXED as RELAXED
from gpuwatch.probe.collectives import (
    AGAIN_NS,
    MOST_BYTES,
    STILL_NS,
    TIMED_NS,
    WAITS_NS,
    Collectives,
)
from gpuwatch.probe.peers import OFF, QUIET_NS
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire import marks

S = 1_000_000_000


class FlightRecorder:
    """PyTorch's, as far as it is asked; reading its entries takes `cost_ns`."""

    def __init__(self, clock: "Clock") -> None:
        self.clock = clock
        self.asked: list[tuple[bool, bool]] = []
        self.cost_ns = 30_000_000
        self.entries = [{"collective_seq_id": 1}]
        self.text = ""

    def dump(self, entries: bool, only_active: bool) -> str:
        self.asked.append((entries, only_active))
        self.clock.ns += self.cost_ns if entries else 50_000
        found = {"pg_status": {"0": {}}, "entries": self.entries if entries else []}
        return self.text or json.dumps(found)


class Clock:
    def __init__(self) -> None:
        self.ns = 100 * S


class Driver:
    """`libcuda.so.1`, with the mode of the calling thread."""

    def __init__(self) -> None:
        self.mode = 0

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:
        mode._obj.value, self.mode = self.mode, mode._obj.value
        return 0


class Run:
    """A training thread and a publisher that take turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        self.recorded = FlightRecorder(self.clock)
        self.capturing = False
        self.timed = 0
        self.backend = "gloo"
        self.module: Any = SimpleNamespace(_dump_fr_trace_json=self.recorded.dump)
        group = SimpleNamespace(_enable_collectives_timing=self._time)
        cuda = SimpleNamespace(
            is_initialized=lambda: True, is_current_stream_capturing=lambda: self.capturing
        )
        for name, module in {
            "torch._C._distributed_c10d": self.module,
            "torch.distributed": SimpleNamespace(is_initialized=lambda: True),
            "torch.distributed.distributed_c10d": SimpleNamespace(
                get_backend=lambda group: self.backend, _world=SimpleNamespace(pg_map=[group])
            ),
            "torch.cuda": cuda,
        }.items():
            monkeypatch.setitem(sys.modules, name, module)
        self.driver = Driver()
        monkeypatch.setattr(ctypes, "CDLL", lambda name: self.driver)
        monkeypatch.setattr(clock, "now_ns", lambda: self.clock.ns)
        self.recorder = Recorder(lambda _: True, self._trip, lambda: self.clock.ns)
        self.asked = Collectives(self.recorder)

    def _time(self) -> None:
        self.timed += 1

    def _trip(self, error: Exception) -> None:
        raise error

    def ask(self, at_s: float = 0.0, entries: bool = True) -> Any:
        at_ns = self.clock.ns + round(at_s * S)
        return self.asked.ask(b"a", at_ns, entries, self.clock.ns)

    def step(self) -> None:
        for kind in (marks.FETCH_ENTER, marks.FETCH_LEAVE, marks.BACKWARD_ENTER):
            self.clock.ns += 1_000_000
            self.recorder.mark(kind)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch)


def test_entries_are_read_by_the_training_thread_at_the_end_of_a_step(run: Run) -> None:
    assert run.ask() is None
    assert run.recorded.asked == []
    run.recorder.mark(marks.BACKWARD_ENTER)
    assert run.recorded.asked == []
    run.step()
    ((who, taken),) = run.asked.answers(run.clock.ns)
    assert (who, taken.entries, taken.cost_ns) == (b"a", True, 30_000_000)
    assert json.loads(taken.body)["entries"] == run.recorded.entries
    assert run.recorder.extra is None
    run.step()
    assert len(run.recorded.asked) == 1, "once for each question"
    assert run.asked.answers(run.clock.ns) == []


def test_what_stands_is_read_beside_a_capture_of_another_thread(run: Run) -> None:
    modes = []
    dump = run.recorded.dump

    def watched(entries: bool, only_active: bool) -> str:
        modes.append(run.driver.mode)
        return dump(entries, only_active)

    run.module._dump_fr_trace_json = watched
    run.step()
    run.clock.ns += QUIET_NS
    taken = run.ask(entries=False)
    assert run.recorded.asked == [(True, True)]
    assert modes == [RELAXED]
    assert run.driver.mode == 0
    here = "test_what_stands_is_read_beside_a_capture_of_another_thread"
    assert here in [name for name, _, _ in taken.frames]


def test_where_the_training_thread_is_comes_with_counters_once_it_is_still(run: Run) -> None:
    run.step()
    assert run.ask(entries=False).frames == []
    run.clock.ns += STILL_NS
    assert run.ask(entries=False).frames != []
    assert (True, True) not in run.recorded.asked


def test_a_rank_that_never_marks_shows_where_it_is(run: Run) -> None:
    """A logger or a parameter server that only takes part in collectives."""
    run.clock.ns += QUIET_NS
    taken = run.ask(entries=False)
    here = "test_a_rank_that_never_marks_shows_where_it_is"
    assert here in [name for name, _, _ in taken.frames]
    assert run.recorded.asked == [(False, True)], "a first graph may be captured"


def test_before_there_is_a_group_a_rank_shows_where_it_waits_for_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch.distributed", module)
    taken = run.ask(entries=False)
    assert "not initialised" in taken.why_not
    here = "test_before_there_is_a_group_a_rank_shows_where_it_waits_for_one"
    assert here in [name for name, _, _ in taken.frames]
    assert run.ask().frames == [], "for entries it costs nothing"
    run.step()
    assert run.ask(entries=False).frames == [], "it is at work"


def test_without_that_driver_counters_are_read_and_no_entries(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", none)
    run.step()
    run.clock.ns += QUIET_NS
    run.ask(entries=False)
    assert run.recorded.asked == [(False, True)]


def test_the_moment_that_is_asked_for_is_kept(run: Run) -> None:
    run.ask(at_s=0.01)
    run.step()
    run.step()
    assert run.recorded.asked == []
    for _ in range(4):
        run.step()
    assert len(run.recorded.asked) == 1


def test_nothing_is_read_while_a_graph_is_captured(run: Run) -> None:
    run.ask()
    run.capturing = True
    run.step()
    assert run.recorded.asked == []
    assert run.timed == 0
    run.capturing = False
    run.step()
    assert len(run.recorded.asked) == 1


def test_nccls_timing_is_switched_on_before_the_first_entries_are_read(run: Run) -> None:
    run.backend = "cpu:gloo,cuda:nccl"
    run.ask(entries=False)
    run.step()
    assert run.timed == 0
    run.ask()
    asked_ns = run.clock.ns
    run.step()
    assert (run.timed, run.recorded.asked) == (1, [(False, True)])
    while len(run.recorded.asked) < 2:
        run.step()
    assert run.clock.ns - asked_ns >= TIMED_NS
    assert run.timed == 1


def test_counters_are_read_at_once(run: Run) -> None:
    run.step()
    taken = run.ask(entries=False)
    assert taken is not None
    assert not taken.entries
    assert run.recorded.asked == [(False, True)]
    assert run.recorder.extra is None


def test_what_has_not_ended_is_read_once_nothing_moves(run: Run) -> None:
    run.step()
    run.clock.ns += QUIET_NS
    run.ask(entries=False)
    assert run.recorded.asked == [(True, True)]
    run.recorder.mark(marks.COMPILE_ENTER)
    run.clock.ns += QUIET_NS
    run.ask(entries=False)
    assert run.recorded.asked[-1] == (False, True), "compiling may end in a capture"


@pytest.mark.parametrize(("cost_ns", "pause_s"), [(1_000_000, AGAIN_NS / S), (30_000_000, 10.0)])
def test_reading_takes_no_more_than_its_part_of_the_time(
    run: Run, cost_ns: int, pause_s: float
) -> None:
    """Who asks too early is given what was read last: another monitor of the same job."""
    run.recorded.cost_ns = cost_ns
    run.ask()
    run.step()
    ((_, first),) = run.asked.answers(run.clock.ns)
    run.clock.ns += round(pause_s * S * 0.9)
    assert run.ask() is first
    run.step()
    assert len(run.recorded.asked) == 1
    run.clock.ns += round(pause_s * S * 0.2)
    assert run.ask() is None
    run.step()
    assert len(run.recorded.asked) == 2


def test_a_run_that_ends_no_step_is_asked_no_longer(run: Run) -> None:
    run.ask()
    assert run.recorder.extra is not None
    run.asked.answers(run.clock.ns + WAITS_NS)
    assert run.recorder.extra is None


def test_whoever_has_asked_meanwhile_is_answered_with_the_same(run: Run) -> None:
    run.ask()
    run.asked.ask(b"b", run.clock.ns, True, run.clock.ns)
    run.step()
    assert [who for who, _ in run.asked.answers(run.clock.ns)] == [b"a", b"b"]
    assert len(run.recorded.asked) == 1


def test_why_there_are_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    del run.module._dump_fr_trace_json
    assert "no flight recorder" in run.ask().why_not
    monkeypatch.setitem(
        sys.modules, "torch.distributed", SimpleNamespace(is_initialized=lambda: False)
    )
    assert "not initialised" in run.ask().why_not
    assert run.recorder.extra is None


def test_more_than_a_frame_takes_is_not_sent(run: Run) -> None:
    run.recorded.text = "x" * (MOST_BYTES + 1)
    run.ask()
    run.step()
    ((_, taken),) = run.asked.answers(run.clock.ns)
    assert taken.body == b"{}"
    assert "too many" in taken.why_not


def test_commands_that_are_turned_off_read_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    run = Run(monkeypatch)
    assert run.ask().why_not == OFF
    run.step()
    assert run.recorded.asked == []
    assert run.timed == 0


def test_of_two_recorders_the_one_that_knows_a_group_is_read(run: Run) -> None:
    run.module._dump_nccl_trace_json = lambda entries, only_active: b'{"pg_status": {}}'
    taken = run.ask(entries=False)
    assert json.loads(taken.body)["pg_status"] == {"0": {}}
    run.module._dump_nccl_trace_json = lambda entries, only_active: b'{"pg_status":{"1":{}}}'
    assert json.loads(run.ask(entries=False).body)["pg_status"] == {"1": {}}
