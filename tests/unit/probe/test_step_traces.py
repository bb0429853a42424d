"""Which steps of a loop are traced, and when none is."""

import gc
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, is_in_torch_dispatch_mode
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from gpuwatch.probe.one_step import needless, traces
from gpuwatch.probe.one_step.tracer import bears_subclasses
from gpuwatch.probe.one_step.traces import (
    MOST_FAILED,
    MOST_STEPS,
    PATIENCE,
    PAUSE,
    STEP_OPERATIONS,
    WARM,
    StepTraces,
)
from tests.unit.probe.fake_device import FakeDevice
from tests.unit.probe.held_clock import Watched, watched

pytestmark = pytest.mark.skipif(
    not bears_subclasses(), reason="this torch breaks tensors of own types below a mode"
)


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests of the process have compiled is theirs."""
    monkeypatch.setattr(traces, "compiles", lambda: False)


class Loop:
    """A loop that is watched."""

    def __init__(self, run: Watched) -> None:
        self.net = nn.Linear(8, 8)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.run = run
        self.traces = StepTraces(run.recorder)

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.optimizer.zero_grad()
            self.net(torch.ones(4, 8)).sum().backward()
            self.optimizer.step()

    def found(self) -> Any:
        return self.traces.reading.get(STEP_OPERATIONS)


def is_on() -> bool:
    return bool(torch._C._len_torch_dispatch_stack())


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


class Own(TorchDispatchMode):
    """A mode of the program's."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_programs_own_is_left_alone() -> None:
    with watched() as run:
        loop = Loop(run)
        with Own():  # type: ignore[no-untyped-call]
            for _ in range(2 * MOST_FAILED):
                loop.traces.ask()
                loop.step(WARM + 2)
                run.clock.work(100_000)
        assert loop.found() is None
        assert loop.traces.is_over


def test_a_mode_that_lies_on_ours_is_waited_for() -> None:
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 1)
        with Own():  # type: ignore[no-untyped-call]
            loop.step(3)
        assert loop.found() is None
        loop.step()
        assert loop.found()[0] == 1
        assert not is_on()


def test_a_program_that_compiles_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as run:
        loop = Loop(run)
        monkeypatch.setattr(traces, "compiles", lambda: True)
        loop.traces.ask()
        loop.step(WARM + 2)
        assert loop.found() is None


def test_a_rank_that_others_wait_for_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as run:
        loop = Loop(run)
        monkeypatch.setattr(traces, "_has_ranks", lambda: True)
        loop.traces.ask()
        loop.step(WARM + 2)
        assert loop.found() is None


def on_device(run: Watched, monkeypatch: pytest.MonkeyPatch) -> tuple[Loop, FakeDevice]:
    """Whose net takes 2 ms of it."""
    device = FakeDevice(run.clock)
    monkeypatch.setattr(traces, "find_events", lambda: device)
    loop = Loop(run)
    loop.net.register_forward_hook(lambda *_: device.launch(2))
    return loop, device


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


def test_a_capture_that_begins_in_a_traced_step_gets_none_of_our_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with watched() as run:
        loop, device = on_device(run, monkeypatch)
        loop.traces.ask()
        loop.step(WARM + 1)
        before = len(device.events)
        device.current.capturing = True
        loop.step()
        assert len(device.events) == before
        assert loop.found() is None
        assert not is_on()


def test_a_capture_under_way_is_not_asked_for_our_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query breaks it, and `FakeDevice` says so."""
    with watched() as run:
        loop, device = on_device(run, monkeypatch)
        loop.traces.ask()
        loop.step(WARM + 2)
        device.current.capturing = True
        loop.step(2)
        assert loop.found() is None
        device.current.capturing = False
        device.synchronize()
        loop.step()
        assert loop.found() is not None


def test_a_closures_backward_lies_in_the_optimizer_and_nothing_is_known_of_it() -> None:
    with watched() as run:
        loop = Loop(run)

        def closure() -> Any:
            loop.net(torch.ones(4, 8)).sum().backward()

        loop.traces.ask()
        for _ in range(WARM + 3):
            step: Any = loop.optimizer.step
            step(closure)
        assert loop.found() is None
        assert not is_on()


def test_in_a_backward_no_mode_goes_on_or_off() -> None:
    """Autograd gives a thread back the modes that it had before: an optimizer that steps there, and
    the backwards of reentrant checkpoints."""
    with watched() as run:
        loop = Loop(run)
        loop.net.weight.register_post_accumulate_grad_hook(lambda _: loop.optimizer.step())
        for _ in range(PATIENCE + 9):
            loop.traces.ask()
            loop.net(torch.ones(4, 8)).sum().backward()
        run.clock.work(5_000)
        loop.net(torch.ones(4, 8)).sum().backward()
    assert not is_on()
    assert not is_in_torch_dispatch_mode()


def test_reentrant_checkpoints_leave_no_mode_on() -> None:
    with watched() as run:
        loop = Loop(run)
        for _ in range(2 * PATIENCE):
            loop.traces.ask()
            run.clock.work(100)
            x = torch.ones(4, 8, requires_grad=True)
            for _ in range(3):
                x = checkpoint(loop.net, x, use_reentrant=True)
            x.sum().backward()
        run.clock.work(5_000)
        loop.net(torch.ones(4, 8)).sum().backward()
    assert not is_on()
    assert not is_in_torch_dispatch_mode()


def test_what_begins_to_compile_in_a_traced_step_has_the_mode_off() -> None:
    original = torch.compile
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 1)
        assert is_on()
        torch.compile(lambda x: x, backend="eager")
        assert not is_on()
        loop.step(2)
        assert loop.found() is None
    assert torch.compile is original


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


def test_what_this_torch_cannot_do_ends_the_trace_and_not_the_watching(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(step: Any, ids: Any) -> None:
        raise RuntimeError("made")

    monkeypatch.setattr(traces, "steady_of", fails)
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 3)
        assert loop.traces.is_over
        assert not is_on()
        assert not run.recorder.extra


@pytest.mark.parametrize("name", traces.NEEDED)
def test_without_a_name_of_torchs_no_step_is_traced(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched() as run:
        loop = Loop(run)
        with monkeypatch.context() as without:
            without.delattr(torch._C, name)
            loop.traces.ask()
            loop.step(WARM + 3)
        assert loop.found() is None


def test_where_a_mode_breaks_the_programs_own_tensors_no_step_is_traced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in torch 2.4."""
    monkeypatch.setattr(traces, "bears_subclasses", lambda: False)
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 3)
        assert loop.found() is None
        assert loop.traces.is_over


def test_commands_that_are_off_trace_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 2)
        assert loop.found() is None
