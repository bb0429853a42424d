"""The benchmark of the steps: out is out, the publisher's time stands still, no row is left out."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns

import pytest
import torch

from tests.bench.cost.loop import LaunchLoop
from tests.bench.cost.machine import HOST
from tests.bench.cost.steps import ROWS
from tests.bench.cost.switch import OpenTime, Switch
from tests.measuring.child import ROOT
from tests.unit.probe.patched import held


def test_out_puts_the_very_objects_back_and_marks_nothing() -> None:
    loop = LaunchLoop(1)
    loop.step()
    before = held()
    switch = Switch()
    try:
        recorder = switch._installed.recorder
        loop.step()
        switch.take_out()
        newest = recorder.newest()
        loop.step()
        switch.shake()
        assert {**held(), "meta_path": before["meta_path"]} == before
        assert recorder.newest() == newest
        switch.put_in()
        loop.step()
        assert recorder.newest() > newest
        assert torch.autograd.graph._engine_run_backward is not before["graph"]
    finally:
        switch.end()
    assert held() == before


class Turns(threading.Thread):
    """A publisher that does nothing."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.turned = threading.Event()
        self.time = OpenTime()
        self._endpoint = None

    def run(self) -> None:
        while not self.stop.is_set():
            self.time.wait(self, self.stop, 0.001)
            self.turned.set()

    def end(self) -> None:
        """Wherever it waits."""
        self.stop.set()
        self.time.free()
        self.join(30)


@pytest.fixture
def turns() -> Iterator[Turns]:
    publisher = Turns()
    publisher.start()
    yield publisher
    publisher.end()
    assert not publisher.is_alive()


def test_a_closed_wait_lasts_until_it_is_opened(turns: Turns) -> None:
    turns.time.close()
    turns.turned.clear()
    turns.time.nudge()
    assert not turns.turned.wait(0.05)
    turns.time.open()
    assert turns.turned.wait(30)


def test_its_clock_stands_still_while_closed(turns: Turns) -> None:
    time = turns.time
    time.close()
    closed_ns = time.now_ns()
    until_ns = perf_counter_ns() + 1_000_000
    while perf_counter_ns() < until_ns:
        pass
    assert time.now_ns() == closed_ns
    time.open()
    opened_ns = time.now_ns()
    assert closed_ns <= opened_ns < perf_counter_ns() - 1_000_000


def test_a_turn_is_due_after_so_much_open_time(turns: Turns) -> None:
    turns.time.close()
    before = turns.time.waits
    for _ in range(3):
        turns.time.nudge()
    assert turns.time.waits == before
    turns.turned.clear()
    turns.time.open()
    assert turns.turned.wait(30)
    assert turns.time.waits > before


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_short_run_prints_every_row(tmp_path: Path) -> None:
    kept = tmp_path / "cost.json"
    command = [sys.executable, "-m", "tests.bench.cost", "--only", "steps", "--seconds", "1"]
    done = subprocess.run(
        [*command, "--json", str(kept)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **HOST.environment},
        timeout=140,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr  # of so few pairs no row says that it misses
    rows = json.loads(kept.read_text())["rows"]
    names = [row.name for row in ROWS]
    others = [row.name for row in ROWS if not row.only_shortest]
    assert [row["item"] for row in rows] == names + others, done.stderr
    assert {row["loop"].partition(" ms")[0] for row in rows} == {"host, 0.5", "host, 2"}
    assert not [row for row in rows if "?" in row["measured"]]
    unmeasured = {row["item"] for row in rows if row["measured"].startswith("not measured")}
    assert unmeasured <= {"instructions"}, "a machine may not count them"
    values = {row["item"]: row["figures"]["value"] for row in rows if "value" in row["figures"]}
    assert 0 < values["lock held, at most"] < 100
    assert "CPU, whole process" in values
