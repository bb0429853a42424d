"""The memory's window on the host: what increases, what it refuses, and that it ends."""

import sys
import tracemalloc
from _tracemalloc import is_tracing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.probe import clock, switched, worker_board
from gpuwatch.probe.deep import memory_history
from gpuwatch.probe.deep.memory_facts import device_answer
from gpuwatch.probe.deep.memory_history import MemoryHistory
from gpuwatch.probe.peers import OFF
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire import marks
from gpuwatch.probe.worker_board import Board

MS = 1_000_000
STEP = (marks.FETCH_ENTER, marks.FETCH_LEAVE, marks.BACKWARD_ENTER, marks.OPTIMIZER_LEAVE)


class Run:
    """A training thread without a device, whose steps take 20 ms of a held clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.ns = 10**12
        self.kept: list[Any] = []
        monkeypatch.setattr(clock, "now_ns", lambda: self.ns)
        monkeypatch.delitem(sys.modules, "torch.cuda", raising=False)
        self.recorder = Recorder(lambda _: True, self._trip, lambda: self.ns)
        self.step()
        self.step()
        self.window = MemoryHistory(self.recorder, str(folder / "7-8"))

    def _trip(self, error: Exception) -> None:
        raise error

    def step(self) -> None:
        for kind in STEP:
            self.ns += 5 * MS
            self.recorder.mark(kind)
        self.kept.append(bytes(10_000))  # LEAK

    def answer(self, steps: int = 40) -> Any:
        for _ in range(steps):
            self.step()
        answered = self.window.turn(self.ns)
        assert answered is not None
        return answered[1]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    yield Run(monkeypatch, tmp_path)
    tracemalloc.stop()


def test_the_line_that_keeps_has_its_bytes_and_blocks(run: Run) -> None:
    assert run.window.ask(b"a", 300 * MS, True, run.ns) is None
    answer = run.answer()
    host = answer["host"]
    size, blocks, stack = host["lines"][0]
    lines = Path(__file__).read_text().splitlines()
    assert stack[0][0].endswith("test_memory_window.py")
    assert lines[stack[0][1] - 1].endswith("# LEAK")
    assert blocks == host["steps"]
    assert 10_000 * blocks <= size < 11_000 * blocks
    assert not is_tracing()
    assert run.recorder.extra is None
    assert not run.window.is_open


def test_a_fork_does_not_go_on_tracing(run: Run) -> None:
    run.window.ask(b"a", 300 * MS, True, run.ns)
    run.step()
    run.step()
    assert is_tracing()
    switched.after_fork()
    assert not is_tracing()
    tracemalloc.start()
    assert tracemalloc.is_tracing(), "the child's own"


def test_a_monitor_that_leaves_ends_its_window_with_the_step(run: Run) -> None:
    """Ctrl-C in `gpuwatch memory --seconds 600` left Python slow for ten minutes."""
    run.window.ask(b"a", 600_000 * MS, True, run.ns)
    run.step()
    run.step()
    assert is_tracing()
    run.window.give_up()
    assert run.answer(1)["why_not"] == "who asked has left"
    assert not is_tracing()
    assert run.recorder.extra is None
    assert not run.window.is_open
    assert run.window.ask(b"b", 300 * MS, True, run.ns) is None
    assert run.answer()["host"]["steps"]


@pytest.fixture
def device(run: Run, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In place of `torch.cuda.memory`; `on`: what its history was switched on with."""
    held = SimpleNamespace(on=None, _snapshot=dict)

    def record(enabled: str | None = "all", **options: Any) -> None:
        held.on = options if enabled else None

    held._record_memory_history = record
    monkeypatch.setattr(memory_history, "_cuda_memory", lambda: held)
    monkeypatch.setattr(memory_history, "_is_recording", lambda: held.on is not None)
    return held


def begin(run: Run, device: SimpleNamespace, host: bool = False) -> None:
    assert run.window.ask(b"a", 300 * MS, host, run.ns) is None
    run.step()
    run.step()
    assert device.on is not None


def leaves(run: Run) -> None:
    run.recorder.stop()


def ends(run: Run) -> None:
    switched.overdue_off(run.ns + 3_600_000 * MS)


def is_given_up(run: Run) -> None:
    run.window.give_up()
    switched.overdue_off(run.ns + 11_000 * MS)


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("happens", [leaves, ends, is_given_up])
def test_the_allocator_s_history_goes_off_where_no_step_ends_any_more(
    run: Run, device: SimpleNamespace, happens: Callable[[Run], None], host: bool
) -> None:
    """A notebook whose cell has ended: each allocation paid for its stack, for good, and all later
    windows were refused."""
    begin(run, device, host)
    happens(run)
    assert device.on is None
    assert not is_tracing()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == "the loop went no further"
    if happens is not leaves:
        begin(run, device)
        assert run.answer()["device"] is not None
        assert device.on is None
        assert run.recorder.extra is None


def test_a_step_of_a_minute_is_waited_for(run: Run, device: SimpleNamespace) -> None:
    begin(run, device)
    run.ns += 60_000 * MS
    switched.overdue_off(run.ns)
    assert run.answer(1)["steps"] == 1


def test_a_fork_leaves_the_device_to_its_parent(run: Run, device: SimpleNamespace) -> None:
    begin(run, device, host=True)
    switched.after_fork()
    assert device.on is not None
    assert not is_tracing()


@pytest.mark.parametrize("how", ["the program stops it", "the probe leaves"])
def test_workers_trace_no_further_than_their_parent(
    run: Run, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(worker_board, "board", Board())
    run.window.ask(b"a", 600_000 * MS, True, run.ns)
    run.step()
    run.step()
    assert worker_board.board is not None
    assert not worker_board.board.is_ended
    if how == "the probe leaves":
        switched.mine_off()
    else:
        tracemalloc.stop()
        run.step()
    assert worker_board.board.is_ended


def test_a_program_that_traces_itself_is_left_alone(run: Run) -> None:
    tracemalloc.start()
    run.window.ask(b"a", 300 * MS, True, run.ns)
    answer = run.answer(3)
    assert "tracemalloc itself" in answer["why_not"]
    assert is_tracing()
    switched.after_fork()
    assert is_tracing(), "it is the program's"


@pytest.mark.parametrize("device_too", [False, True])
def test_a_program_that_begins_to_trace_ends_the_window(
    run: Run, device: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, device_too: bool
) -> None:
    """The end of the window ended the program's own, and `take_snapshot` raised in its loop."""
    if not device_too:
        monkeypatch.setattr(memory_history, "_cuda_memory", lambda: None)
    bare = tracemalloc.start, tracemalloc.stop, tracemalloc.is_tracing
    run.window.ask(b"a", 300 * MS, True, run.ns)
    run.step()
    run.step()
    assert is_tracing()
    if not tracemalloc.is_tracing():
        tracemalloc.start(5)
    assert tracemalloc.get_traceback_limit() == 5
    assert "tracemalloc itself" in run.answer()["why_not"]
    assert tracemalloc.take_snapshot().traces
    assert (tracemalloc.start, tracemalloc.stop, tracemalloc.is_tracing) == bare
    assert device.on is None
    tracemalloc.stop()
    assert not tracemalloc.is_tracing()


@pytest.mark.parametrize("words", [{"max_entries": 7}, {"enabled": None}])
def test_a_program_that_records_its_allocator_meanwhile_ends_the_window(
    run: Run, device: SimpleNamespace, words: dict[str, Any]
) -> None:
    bare = device._record_memory_history
    begin(run, device)
    device._record_memory_history(**words)
    its_own = device.on
    assert its_own == (words if "max_entries" in words else None)
    assert "its allocator's history itself" in run.answer()["why_not"]
    assert device.on == its_own
    assert device._record_memory_history is bare


def test_turned_off_commands_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    run = Run(monkeypatch, tmp_path)
    assert run.window.ask(b"a", MS, True, run.ns) == {"why_not": OFF}


FRAMES = [{"filename": "train.py", "line": 3, "name": "train"}]


def block(address: int, size: int, state: str = "active_allocated", frames: Any = None) -> Any:
    return {"address": address, "size": size, "state": state, "frames": frames or []}


def test_blocks_older_than_two_steps_outlive_the_window() -> None:
    snapshot = {
        "segments": [
            {
                "address": 0,
                "total_size": 100,
                "blocks": [
                    block(0, 10, frames=FRAMES),
                    block(10, 20, frames=FRAMES),
                    block(30, 30, state="inactive"),
                    block(60, 40),
                ],
            },
            {"address": 500, "total_size": 50, "blocks": [block(500, 50, state="inactive")]},
        ],
        "device_traces": [
            [
                {"action": "alloc", "addr": 99, "time_us": 1},
                {"action": "alloc", "addr": 10, "time_us": 95},
            ]
        ],
    }
    found = device_answer(snapshot, [10, 50, 90, 100])
    assert (found["reserved"], found["active"]) == (150, 70)
    assert found["before"] == 40, "no stack: it was there before"
    assert (found["empty"], found["holey"]) == (50, 30)
    assert found["short"] is False
    ((size, blocks, old_bytes, old_blocks, _, stack),) = found["stacks"]
    assert (size, blocks) == (30, 2)
    assert (old_bytes, old_blocks) == (10, 1), "the other was made in the last step"
    assert stack == [["train.py", 3, "train"]]
