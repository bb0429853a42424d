"""The switch of the benchmark: out is out, and its publisher's time stands still."""

import threading
from collections.abc import Iterator
from time import perf_counter_ns
from types import SimpleNamespace

import pytest
import torch

from tests.bench.cost.loop import LaunchLoop
from tests.bench.cost.switch import OpenTime, Switch
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
        serve = SimpleNamespace(serve=lambda for_ns: self.stop.wait(for_ns / 1e9))
        self.server = SimpleNamespace(_endpoint=serve)

    def run(self) -> None:
        while not self.stop.is_set():
            self.time.wait(self.server, self.stop, 0.001)
            self.turned.set()


@pytest.fixture
def turns() -> Iterator[Turns]:
    publisher = Turns()
    publisher.start()
    yield publisher
    publisher.stop.set()
    publisher.join(30)
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
