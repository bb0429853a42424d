"""The profiler's window: when it opens, what it refuses, and that it leaves nothing behind."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.probe import clock
from gpuwatch.probe.deep import profiler as module
from gpuwatch.probe.deep.profiler import (
    MOST_BYTES,
    MOST_OPERATORS,
    MOST_WITHOUT_SHAPES,
    TEARDOWN,
    TOO_MANY,
    WAITS_NS,
    Profiler,
)
from gpuwatch.probe.peers import OFF
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire import marks

MS = 1_000_000
STEP = (marks.FETCH_ENTER, marks.FETCH_LEAVE, marks.BACKWARD_ENTER, marks.OPTIMIZER_LEAVE)


class Results:
    def __init__(self, run: "Run") -> None:
        self.run = run

    def save(self, path: str) -> None:
        self.run.teardown_at_stop.append(os.environ.get(TEARDOWN))
        sampled = self.run.begun[-1]["use_cpu"] and len(self.run.begun) == 1
        line = b'{"ph": "X", "cat": "cpu_op"}\n'
        text = line * self.run.operators if sampled else b"x" * self.run.trace_bytes
        Path(path).write_bytes(text)


class Run:
    """A training thread with a device, a profiler that writes files, and a publisher."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.ns = 10**12
        self.trace_bytes = 1_000
        self.operators = 100
        """In the sample, which lasts for 2.75 steps."""
        self.begun: list[dict[str, Any]] = []
        self.teardown_at_stop: list[str | None] = []
        self.capturing = self.profiling = False
        self.cuda_version = "13.0"
        self.fails = ""
        self.has_device = True
        cuda = SimpleNamespace(
            is_available=lambda: self.has_device,
            is_initialized=lambda: True,
            is_current_stream_capturing=lambda: self.capturing,
            synchronize=lambda: None,
        )
        for name, found in {
            "torch": SimpleNamespace(
                version=SimpleNamespace(cuda=self.cuda_version),
                _C=SimpleNamespace(
                    _profiler=SimpleNamespace(_ExperimentalConfig=lambda trace_only: None)
                ),
            ),
            "torch.cuda": cuda,
            "torch.autograd": SimpleNamespace(_profiler_enabled=lambda: self.profiling),
            "torch.autograd.profiler": SimpleNamespace(
                profile=self._profile, _disable_profiler=lambda: Results(self)
            ),
        }.items():
            monkeypatch.setitem(sys.modules, name, found)
        monkeypatch.setattr(clock, "now_ns", lambda: self.ns)
        monkeypatch.setattr(module, "LEAST_FREE_BYTES", 0)
        monkeypatch.setattr(module, "LOOKED_NS", 0)
        self.folder = folder
        self.recorder = Recorder(lambda _: True, self._trip, lambda: self.ns)
        for _ in range(3):
            self.step()
        self.window = Profiler(self.recorder, str(folder / "7-8"))

    def _trip(self, error: Exception) -> None:
        raise error

    def _profile(self, **options: Any) -> Any:
        if self.fails:
            raise RuntimeError(self.fails)
        return Entered(self, options)

    def step(self) -> None:
        for kind in STEP:
            self.ns += 5 * MS
            self.recorder.mark(kind)

    def ask(self, steps: int = 3, operators: bool = True, most_ns: int = 10**10) -> Any:
        return self.window.ask(b"a", steps, most_ns, operators, self.ns)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


class Entered:
    def __init__(self, run: Run, options: dict[str, Any]) -> None:
        run.begun.append(options)

        self.run = run
        self.kineto_results: Results | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.kineto_results = Results(self.run)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    return Run(monkeypatch, tmp_path)


def test_one_step_with_operators_then_the_steps_that_count(run: Run) -> None:
    assert run.ask() is None
    for _ in range(15):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    who, answer = answered
    assert who == b"a"
    assert answer["why_not"] == ""
    assert [one["use_cpu"] for one in run.begun] == [True, True, False], "a sample comes first"
    assert [one["record_shapes"] for one in run.begun] == [False, True, False]
    assert [one["use_device"] for one in run.begun] == [None, "cuda", "cuda"]
    assert len(answer["operators"]["ends_ns"]) == 3, "its beginning, and two steps"
    assert len(answer["times"]["ends_ns"]) == 5, "its beginning, and one more than was asked for"
    assert len(run.files()) == 2
    json.dumps(answer)
    run.window.remove()
    assert run.files() == []
    assert run.recorder.extra is None


def test_cupti_is_torn_down_with_the_last_recording_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TEARDOWN, "0")
    run.ask()
    for _ in range(14):
        run.step()
    assert run.teardown_at_stop == ["0", "0", "1"]
    run.step()
    assert os.environ[TEARDOWN] == "0", "as the program had it"
    assert run.window.turn(run.ns) is not None
    assert not run.window.is_open


def test_an_older_cuda_keeps_its_profiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(TEARDOWN, raising=False)
    run = Run(monkeypatch, tmp_path)
    sys.modules["torch"].version.cuda = "12.4"
    run.ask(operators=False)
    for _ in range(8):
        run.step()
    assert run.teardown_at_stop == [None]
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["torn_down"] is False


def test_nothing_begins_or_ends_while_a_graph_is_captured(run: Run) -> None:
    run.capturing = True
    run.ask(operators=False)
    run.step()
    run.step()
    assert run.begun == []
    run.capturing = False
    run.step()
    assert len(run.begun) == 1
    run.capturing = True
    for _ in range(8):
        run.step()
    assert run.files() == []
    run.capturing = False
    run.step()
    assert len(run.files()) == 1


def test_refused_while_another_profiler_records(run: Run) -> None:
    run.profiling = True
    run.ask()
    run.step()
    run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert "another profiler" in answered[1]["why_not"]
    assert run.begun == []
    assert run.recorder.extra is None
    assert not run.window.is_open


def test_a_profiler_that_fails_is_the_answer_and_not_the_probes_end(run: Run) -> None:
    run.fails = "CUPTI says no"
    run.ask()
    run.step()
    run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == "RuntimeError: CUPTI says no"
    assert run.recorder.on


def test_without_torchs_private_names_the_public_way_is_taken(run: Run) -> None:
    del sys.modules["torch.autograd.profiler"]._disable_profiler
    del sys.modules["torch"]._C
    run.ask(operators=False)
    for _ in range(8):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == ""


def test_commands_that_are_turned_off_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    run = Run(monkeypatch, tmp_path)
    assert run.ask() == {"why_not": OFF}
    assert run.recorder.extra is None


def test_a_disk_without_room_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_FREE_BYTES", 2**62)
    assert "free" in run.ask()["why_not"]


def test_no_step_within_a_minute_is_reported(run: Run) -> None:
    run.ask()
    assert run.window.turn(run.ns + WAITS_NS) is None
    answered = run.window.turn(run.ns + WAITS_NS + 1)
    assert answered is not None
    assert "no step" in answered[1]["why_not"]
    assert run.recorder.extra is None


def test_fewer_steps_where_a_step_has_much_of_a_trace(run: Run) -> None:
    run.trace_bytes = MOST_BYTES // 4
    run.ask(steps=50)
    for _ in range(80):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    times = answered[1]["times"]
    assert len(times["ends_ns"]) - 2 <= 6, "two steps had a quarter of what is kept"


def test_a_step_with_too_much_of_a_trace_is_refused(run: Run) -> None:
    run.trace_bytes = MOST_BYTES
    run.ask()
    for _ in range(10):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert "more than is kept" in answered[1]["why_not"]
    assert run.files() == []


def test_a_recording_ends_when_its_time_is_over(run: Run) -> None:
    run.ask(steps=100, operators=False, most_ns=50 * MS)
    for _ in range(6):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    times = answered[1]["times"]
    assert times["marks"][-1][0] - times["ends_ns"][0] <= 60 * MS


def test_files_that_nobody_takes_are_removed(run: Run) -> None:
    run.ask(operators=False)
    for _ in range(8):
        run.step()
    assert run.window.turn(run.ns) is not None
    assert len(run.files()) == 1
    run.window.turn(run.ns + module.KEPT_NS)
    assert run.files() == []


def test_no_more_steps_than_operators_can_be_recorded_of(run: Run) -> None:
    run.has_device = False
    run.operators = 10_000 * 11 // 4
    run.ask(steps=50)
    for _ in range(80):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    times = answered[1]["times"]
    assert len(times["ends_ns"]) - 2 == MOST_OPERATORS // 10_000 - 1
    assert run.begun[-1]["record_shapes"]


def test_many_operators_are_recorded_without_their_shapes(run: Run) -> None:
    run.operators = MOST_OPERATORS * 11 // 4
    run.ask()
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["operators"] is not None
    assert [one["record_shapes"] for one in run.begun] == [False, False, False]


def test_too_many_operators_are_left_out_where_there_are_kernels(run: Run) -> None:
    run.operators = MOST_WITHOUT_SHAPES * 11 // 4
    run.ask()
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    answer = answered[1]
    assert (answer["why_not"], answer["no_operators"]) == ("", TOO_MANY)
    assert answer["operators"] is None
    assert len(answer["times"]["ends_ns"]) >= 3


def test_too_many_operators_are_refused_where_there_is_nothing_else(run: Run) -> None:
    run.has_device = False
    run.operators = MOST_WITHOUT_SHAPES * 11 // 4
    run.ask()
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == TOO_MANY
    assert len(run.begun) == 1
    assert run.files() == []


def test_a_step_that_grows_as_its_operators_do_is_cut(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of it, long before its next mark."""
    run.has_device = False
    run.operators = MOST_WITHOUT_SHAPES
    rss = [10**9]
    monkeypatch.setattr(module, "resident_bytes", lambda: (rss[0], 0))
    run.ask()
    while len(run.begun) < 1:
        run.step()
    run.ns += 60 * MS
    run.recorder.mark(marks.FETCH_LEAVE)  # the sample ends in the middle of a step
    while len(run.begun) < 2:
        run.step()
    recording = run.window._recording
    assert recording is not None
    run.ns += 50 * MS
    cut: list[int] = []
    monkeypatch.setattr(module, "overdue_off", cut.append)
    assert run.window.turn(run.ns) is None
    assert cut == [], "it has not grown"
    rss[0] += module.DENSE_BYTES + 1
    run.window.turn(run.ns)
    assert cut == [run.ns]
    recording.switched.off()  # as the main thread's pending call does
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == TOO_MANY


def test_a_recording_that_ends_just_now_is_not_cut_as_well(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main thread's pending call comes between any two bytecodes, also of the ending itself."""
    run.has_device = False
    run.ask()
    for _ in range(2):
        run.step()
    recording = run.window._recording
    assert recording is not None
    disable = sys.modules["torch.autograd.profiler"]._disable_profiler

    def cut_meanwhile() -> Any:
        recording.switched.off()
        return disable()

    monkeypatch.setattr(sys.modules["torch.autograd.profiler"], "_disable_profiler", cut_meanwhile)
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == ""
