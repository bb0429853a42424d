"""The profiler's window: when it opens, what it refuses, and that it leaves nothing behind."""

import json
import os
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from gpuwatch.probe.deep import profiler as module
from gpuwatch.probe.deep.profiler import MOST_BYTES, TEARDOWN, WAITS_NS
from gpuwatch.probe.peers import OFF
from tests.unit.probe.profiled import MS, STEP, Run


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


def test_another_thread_that_trains_meanwhile_leaves_the_recording_to_its_own(run: Run) -> None:
    """kineto's state belongs to a thread: ended on another, it would record for ever."""
    run.ask(steps=1, operators=False)
    run.step()
    run.step()
    recording = run.window._recording
    assert recording is not None
    other = Thread(target=lambda: list(map(run.window.at, 20 * STEP)))
    other.start()
    other.join()
    assert run.window._recording is recording
    for _ in range(4):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == ""


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


class Group:
    """A process group whose backend numbers its collectives; or does not."""

    def __init__(self, issued: int | None) -> None:
        self.issued = issued

    def _get_sequence_number_for_group(self) -> int:
        if self.issued is None:
            raise RuntimeError("Backend does not yet support sequence numbers.")
        return self.issued


def in_groups(monkeypatch: pytest.MonkeyPatch, **groups: Group) -> None:
    names = {group: name for name, group in groups.items()}
    distributed = SimpleNamespace(_world=SimpleNamespace(pg_names=names))
    monkeypatch.setitem(sys.modules, "torch.distributed.distributed_c10d", distributed)


def test_ranks_begin_behind_the_same_collective(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    world, issued = Group(100), 100
    in_groups(monkeypatch, world=world, odd=Group(None))
    assert run.ask(steps=0) == {"why_not": "", "issued": {"world": 100}}
    assert run.ask(operators=False, group="world", number=112) is None
    for issued in (104, 108, 112):
        assert not run.begun
        world.issued = issued
        run.step()
    assert len(run.begun) == 1
    for _ in range(6):
        issued += 4
        world.issued = issued
        run.step()
    made = run.window.turn(run.ns)
    assert made is not None
    answer = made[1]
    assert answer["times"]["issued"] == [{"world": 112 + 4 * at} for at in range(5)]
    assert len(answer["times"]["ends_ns"]) == 5


def test_a_group_that_is_not_there_keeps_no_window_from_opening(run: Run) -> None:
    assert run.ask(operators=False, group="world", number=112) is None
    run.step()
    run.step()
    assert len(run.begun) == 1
