"""A real worker in its turn: found, sampled by itself, and counted as one of those there are."""

import time
from pathlib import Path

import pytest

from gpuwatch.tui import clock
from gpuwatch.tui.discovery.targets import still_runs
from gpuwatch.tui.model.observations import AnyObservation, Missing, StacksSeen
from gpuwatch.tui.sources import stacks
from gpuwatch.tui.sources.stacks import StacksSource, find_py_spy
from tests.processes.monitored import started, until

SCRIPT = """
import multiprocessing, os, time

READ, HELD_BY_PARENT = os.pipe()

def makes_a_batch():
    os.close(HELD_BY_PARENT)
    os.read(READ, 1)  # ends with the parent, however that ends

def _worker_loop():
    makes_a_batch()

def starts_workers():
    start = multiprocessing.get_context("fork").Process
    workers = [start(target=_worker_loop, daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    print(*(worker.pid for worker in workers), flush=True)
    time.sleep(600)

starts_workers()
"""
LIMIT_S = 30.0


@pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed")
def test_a_worker_and_then_the_main_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "EAGER", 0)
    with started(SCRIPT, tmp_path) as run:
        pids = tuple(sorted(map(int, run.line().split())))
        source = StacksSource(run.pid)
        source.open()
        seen: list[AnyObservation] = []
        end_s = time.monotonic() + LIMIT_S
        while len(seen) < 2 and time.monotonic() < end_s:
            seen += source.poll(clock.now_ns() + len(seen) * 60_000_000_000)
            time.sleep(0.05)
        source.close()
    until(lambda: not any(map(still_runs, pids)))
    assert [one.reason for one in seen if isinstance(one, Missing)] == []
    worker, main = seen
    assert isinstance(worker, StacksSeen)
    assert isinstance(main, StacksSeen)
    assert (worker.among, main.among) == (pids, ())
    assert {(one.role, one.pid) for one in worker.stacks} == {("worker", pids[0])}
    for stack in worker.stacks:
        assert [frame.partition(" ")[0] for frame in stack.frames] == [
            "_worker_loop",
            "makes_a_batch",
        ]
    assert {(one.role, one.pid) for one in main.stacks} == {("main", run.pid)}
