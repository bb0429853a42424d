"""Memory that grows in a DataLoader's workers: who is asked, what comes back, what is left."""

import os
import time
import tracemalloc
from _tracemalloc import is_tracing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from gpuwatch.probe.deep.worker_memory import MOST_BYTES, SUFFIX, WorkersAsked, WorkerWindow
from gpuwatch.probe.hooks import workers
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.worker_board import Board, shared_board

WINDOW_NS = 1_200_000_000
MOST_BATCHES = 20_000


class Leaking(Dataset[torch.Tensor]):
    """Keeps what it makes for each sample; `traces`: runs tracemalloc itself."""

    def __init__(self, traces: bool = False) -> None:
        self.kept: list[Any] = []
        self.traces = traces

    def __len__(self) -> int:
        return 8 * MOST_BATCHES

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.traces and not tracemalloc.is_tracing():
            tracemalloc.start()
        self.kept.append(str(index) * 200)  # LEAK
        return torch.ones(1)


@pytest.fixture
def board() -> Iterator[Board]:
    """With the watchdog hooked, as it is put back."""
    failures: list[Exception] = []
    detach = workers.attach(Recorder(lambda kind: True, failures.append))
    yield shared_board()
    assert detach() == ()
    assert failures == []


class Seen(Dataset[torch.Tensor]):
    """Whether its worker is traced."""

    def __len__(self) -> int:
        return 8 * MOST_BATCHES

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(is_tracing())


@pytest.mark.parametrize("again", [False, True])
def test_workers_trace_no_further_once_who_asked_has_left(
    board: Board, tmp_path: Path, again: bool
) -> None:
    """`again`: asked anew, with a window of its own, before the worker has looked."""
    stem, until_ns = str(tmp_path / "7-8"), time.perf_counter_ns() + 600 * 10**9
    board.ask(stem, until_ns)
    batches = iter(DataLoader(Seen(), batch_size=8, num_workers=1))
    assert any(batch.any() for batch in batches)
    asked = WorkersAsked(stem, until_ns)
    board.end()
    asked.remove()
    if again:
        board.ask(stem, time.perf_counter_ns() + WINDOW_NS)
    assert any(not batch.any() for batch in batches)
    answer = WorkersAsked(stem, 0).answer()
    assert answer["asked"] == again, "where the machine is busy it may have too few batches to say"
    del batches


def answered(board: Board, folder: Path, dataset: Leaking, count: int = 2) -> Any:
    """What workers say that are asked after their first batches."""
    loader = DataLoader(dataset, batch_size=8, num_workers=count)
    stem = str(folder / "7-8")
    asked: WorkersAsked | None = None
    for number, _ in enumerate(loader):
        if number == 10:
            until_ns = time.perf_counter_ns() + WINDOW_NS
            asked = WorkersAsked(stem, until_ns)
            board.ask(stem, until_ns)
        elif asked is not None and number > 100 and not asked.is_waited_for(0):
            break
    assert asked is not None
    found = asked.answer()
    assert list(folder.iterdir()) == []
    return found


def test_the_line_that_keeps_in_a_worker_has_its_bytes_and_blocks(
    board: Board, tmp_path: Path
) -> None:
    found = answered(board, tmp_path, Leaking())
    assert (found["asked"], found["answered"]) == (2, 2)
    size, blocks, of, stack = found["lines"][0]
    line = Path(__file__).read_text().splitlines()[stack[0][1] - 1]
    assert line.endswith("# LEAK")
    assert of == 2
    assert blocks == pytest.approx(8 * found["turns"], rel=0.1)
    assert 400 * blocks < size < 2_000 * blocks
    assert not is_tracing(), "this process is not traced for it"


def test_a_worker_that_traces_itself_is_left_alone(board: Board, tmp_path: Path) -> None:
    found = answered(board, tmp_path, Leaking(traces=True), count=1)
    assert found["answered"] == 0
    assert found["why_not"] == "the worker runs tracemalloc itself"
    assert found["lines"] == []


def test_a_worker_that_begins_to_trace_ends_its_window(tmp_path: Path) -> None:
    window = WorkerWindow(str(tmp_path / "7-8"), time.perf_counter_ns() + WINDOW_NS)
    assert is_tracing()
    tracemalloc.start(5)
    try:
        assert tracemalloc.get_traceback_limit() == 5
        assert not window.turn()
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    (answer,) = tmp_path.iterdir()
    assert "the worker runs tracemalloc itself" in answer.read_text()


def test_a_question_is_for_children_of_who_asks_and_for_its_time(board: Board) -> None:
    """Ranks that a launcher has forked share its page."""
    board.ask("/tmp/stem", time.perf_counter_ns() + WINDOW_NS)
    assert board.asked() is None, "this process is no child of its own"
    board.words[1] = os.getppid()
    asked = board.asked()
    assert asked is not None
    assert asked[0] == "/tmp/stem"
    board.words[2] = time.perf_counter_ns()
    assert board.asked() is None


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b'{"lines": 7}', b'{"lines": [[1, 2]]}', b'{"turns": "x"}', b" " * 70_000]
)
def test_what_a_worker_has_made_up_is_passed_over(text: bytes, tmp_path: Path) -> None:
    (tmp_path / f"7-8.{os.getpid()}{SUFFIX}").write_bytes(text)
    (tmp_path / f"7-8.1{SUFFIX}").write_bytes(b" " * (MOST_BYTES + 1))
    asked = WorkersAsked(str(tmp_path / "7-8"), 0)
    found = asked.answer()
    assert (found["asked"], found["answered"], found["lines"]) == (2, 0, [])
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    (tmp_path / f"7-8.{child}{SUFFIX}").touch()
    asked = WorkersAsked(str(tmp_path / "7-8"), time.perf_counter_ns())
    assert not asked.is_waited_for(time.perf_counter_ns())
    (tmp_path / f"7-8.{os.getpid()}{SUFFIX}").touch()
    assert asked.is_waited_for(time.perf_counter_ns())
