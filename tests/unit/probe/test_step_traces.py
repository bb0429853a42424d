"""Which steps of a loop are traced, and what of them is known."""

import gc
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from gpuwatch.probe.one_step import needless, traces
from gpuwatch.probe.one_step.traces import (
    MOST_STEPS,
    PATIENCE,
    PAUSE,
    WARM,
)
from gpuwatch.tui.settings import StepOperations
from tests.unit.probe.held_clock import Watched, watched
from tests.unit.probe.traced import BEARS_SUBCLASSES, Loop, is_on, on_device

pytestmark = [BEARS_SUBCLASSES, pytest.mark.usefixtures("nothing_is_compiled")]


def test_a_step_is_traced_once_the_loop_is_warm() -> None:
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM)
        assert not is_on()
        loop.step()
        assert is_on()
        loop.step()
        assert not is_on()
        number, operations, *_ = loop.found()
        assert number == 1
        assert operations >= 5


def test_how_long_the_step_was_is_known_too() -> None:
    with watched() as run:
        loop = Loop(run)
        loop.net.register_forward_hook(lambda *_: run.clock.work(7))
        loop.traces.ask()
        loop.step(WARM + 2)
        assert StepOperations(*loop.found()).wall_us == 7_000


def test_the_next_comes_a_pause_later_and_no_more_than_so_many() -> None:
    with watched() as run:
        loop = Loop(run)
        for _ in range(3 * MOST_STEPS):
            loop.traces.ask()
            run.clock.work(1)
            loop.step(WARM + 2)
        assert loop.found()[0] == MOST_STEPS
        assert loop.traces.is_over
        assert not run.recorder.extra


def test_what_a_trace_takes_is_a_fiftieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as run:
        loop = Loop(run)
        monkeypatch.setattr(traces, "steady_of", _slow(run, needless.steady_of, 10))
        loop.traces.ask()
        loop.step(WARM + 2)
        run.clock.work(10 * PAUSE - 1)
        loop.traces.ask()
        loop.step(2)
        assert loop.found()[0] == 1
        run.clock.work(2)
        loop.traces.ask()
        loop.step(2)
        assert loop.found()[0] == 2


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_behind_a_trace_as_before(collects: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        with watched() as run:
            loop = Loop(run)
            loop.traces.ask()
            loop.step(WARM + 2)
            assert loop.found()
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def _slow(run: Watched, original: Any, ms: float) -> Any:
    def wrapped(step: Any, ids: Any) -> Any:
        run.clock.work(ms)
        return original(step, ids)

    return wrapped


def test_of_two_optimizers_one_goes_from_its_step_to_its_next() -> None:
    with watched() as run:
        loop = Loop(run)
        other = torch.optim.SGD(loop.net.parameters(), lr=0.1)
        loop.traces.ask()
        for _ in range(WARM + 2):
            loop.net(torch.ones(4, 8)).sum().backward()
            loop.optimizer.step()
            loop.net(torch.ones(4, 8)).mean().backward()
            other.step()
        found = loop.found()
        products = [one for one in found[4] if "test_step_traces" in one[0]]
        assert sum(one[7] for one in products) >= 10, "both forwards and backwards"


def test_without_an_optimizer_a_backward_ends_a_step() -> None:
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        for _ in range(PATIENCE + 3):
            loop.net(torch.ones(4, 8)).sum().backward()
        assert loop.found()[0] == 1


def test_the_optimizer_and_the_loader_are_no_part_of_it() -> None:
    with watched() as run:
        loop = Loop(run)
        loader: Any = DataLoader(TensorDataset(torch.ones(40, 8)), batch_size=4)
        loop.traces.ask()
        for (batch,) in loader:
            loop.optimizer.zero_grad()
            loop.net(batch).sum().backward()
            loop.optimizer.step()
        assert loop.found() is not None
        assert "stack" not in str(loop.found())
        assert "_foreach" not in str(loop.found())


def test_on_a_device_its_own_times_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operation takes what lies between its two events, beyond the shortest of all: the
    device is 5 ms behind, and works 2 ms for the product."""
    with watched() as run:
        loop, device = on_device(run, monkeypatch)
        loop.traces.ask()
        loop.step(WARM + 2)
        assert loop.found() is None, "the device has not passed it"
        device.synchronize()
        loop.step()
        assert loop.found()[0] == 1


def test_the_middle_of_all_steps_is_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them holds an evaluation."""
    with watched() as run:
        loop = Loop(run)
        for number in range(3):
            run.clock.work(100_000)
            loop.traces.ask()
            loop.step(WARM if number == 0 else 0)
            loop.step()
            if number == 1:
                for _ in range(50):
                    loop.net(torch.ones(4, 8))
            loop.step()
        assert loop.found()[0] == 3
        assert loop.found()[1] < 50
