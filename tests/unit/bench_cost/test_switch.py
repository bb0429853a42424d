"""The switch of the benchmark: out is out, and its publisher's time stands still."""

import threading
from time import perf_counter_ns

import torch

from tests.bench.cost.loop import LaunchLoop
from tests.bench.cost.switch import OpenTime, Switch
from tests.unit.probe.test_install import held


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


def test_a_closed_wait_lasts_until_it_is_opened() -> None:
    time = OpenTime(threading.Event())
    woken = threading.Event()

    def wait() -> None:
        time.wait(0.001)
        woken.set()
        time.wait(60)

    waiting = threading.Thread(target=wait, daemon=True)
    time._open = False
    waiting.start()
    time.nudge()
    assert not woken.wait(0.05)
    time.open()
    assert woken.wait(30)


def test_its_clock_stands_still_while_closed() -> None:
    time = OpenTime(threading.Event())
    waiting = threading.Thread(target=time.wait, args=(60,), daemon=True)
    waiting.start()
    time.close()
    closed_ns = time.now_ns()
    until_ns = perf_counter_ns() + 1_000_000
    while perf_counter_ns() < until_ns:
        pass
    assert time.now_ns() == closed_ns
    time.open()
    opened_ns = time.now_ns()
    assert closed_ns <= opened_ns < perf_counter_ns() - 1_000_000
