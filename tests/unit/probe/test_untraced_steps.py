"""Where no step is traced, for a mode would be seen or do harm, and where one goes off."""

import threading
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, is_in_torch_dispatch_mode
from torch.utils.checkpoint import checkpoint

from gpuwatch.probe.dispatch_modes import is_in_backward
from gpuwatch.probe.one_step import tracer, traces
from gpuwatch.probe.one_step.traces import (
    MOST_FAILED,
    PATIENCE,
    WARM,
)
from tests.unit.probe.held_clock import watched
from tests.unit.probe.traced import BEARS_SUBCLASSES, Loop, is_of_forward, is_on, on_device

pytestmark = [BEARS_SUBCLASSES, pytest.mark.usefixtures("nothing_is_compiled")]


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


@pytest.mark.parametrize("asked", ["compiles", "holds_compiled"])
def test_a_program_that_compiles_is_left_alone(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    with watched() as run:
        loop = Loop(run)
        monkeypatch.setattr(traces, asked, lambda: True)
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


@pytest.mark.parametrize(
    "product",
    [
        lambda x: x.cumprod(1),
        lambda x: x.clone().cumprod_(1),
        lambda x: x.prod(),
        lambda x: x[None].prod(1),
        lambda x: torch.zeros(4, 8).masked_fill(torch.ones(4, 8) > 0, x.sum()),
    ],
)
def test_a_backward_that_a_mode_makes_another_meets_none(product: Any) -> None:
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 1)
        assert is_on()
        result = product(loop.net(torch.ones(4, 8))).sum()
        assert is_on()
        result.backward()
        assert not is_on()
        loop.step(2)
        assert is_of_forward(loop.found())
        assert loop.traces.is_over


def test_a_mode_goes_off_before_gradients_that_are_asked_for() -> None:
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 1)
        x = torch.ones(4, 8, requires_grad=True)
        energy = loop.net(x).cumprod(1).sum()
        torch.autograd.grad(energy, x, create_graph=True)
        assert not is_on()
        assert loop.traces.is_over


def test_a_graph_from_before_the_mode_is_looked_through() -> None:
    """A critic's, whose actor's optimizer has stepped meanwhile."""
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM)
        loss = loop.net(torch.ones(4, 8)).prod(1).sum()
        loop.step()
        assert is_on()
        loss.backward()
        assert not is_on()


@pytest.mark.parametrize("many", [True, False])
def test_no_mode_goes_off_within_the_backward_of_a_reentrant_checkpoint(
    monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    """Autograd would put it on again behind the backward, for good."""

    def block(v: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = loop.net(v)
        return hidden.tanh() if many else hidden.prod(1, keepdim=True)

    with watched() as run:
        loop = Loop(run)
        monkeypatch.setattr(tracer, "MOST_OPERATIONS", 12 if many else tracer.MOST_OPERATIONS)
        for _ in range(3 * MOST_FAILED):
            run.clock.work(100_000)
            loop.traces.ask()
            for _ in range(WARM + 2):
                x = torch.ones(4, 8, requires_grad=True)
                for _ in range(2):
                    block_of = checkpoint(block, x, use_reentrant=True)
                    block_of.sum().backward()
                loop.optimizer.step()
        assert not is_on()
        assert not is_in_torch_dispatch_mode()
        assert is_of_forward(loop.found()) is not many


def test_a_failure_within_a_backward_leaves_no_mode_on(monkeypatch: pytest.MonkeyPatch) -> None:
    follow = traces.StepTraces._follow

    def fails_within(one: traces.StepTraces, *mark: Any) -> None:
        if is_in_backward():
            raise ValueError
        follow(one, *mark)

    monkeypatch.setattr(traces.StepTraces, "_follow", fails_within)
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        for _ in range(WARM + 3):
            x = torch.ones(4, 8, requires_grad=True)
            checkpoint(loop.net, x, use_reentrant=True).sum().backward()
            loop.optimizer.step()
        assert not is_on()
        assert not is_in_torch_dispatch_mode()
        assert loop.traces.is_over
        assert not run.failures


def test_a_product_that_nothing_is_learned_through_is_traced() -> None:
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 1)
        torch.ones(4, 8).cumprod(1)
        loop.step()
        assert loop.found()


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


def test_a_mode_is_tried_out_on_no_thread_of_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler of the program's that raises as the mode is about to go off would leave it on: on a
    loaded machine that took a whole test run with it."""
    on: list[int] = []

    def tries() -> bool:
        on.append(threading.get_ident())
        return True

    monkeypatch.setattr(traces, "bears_subclasses", tries)
    with watched() as run:
        loop = Loop(run)
        publisher = threading.Thread(target=loop.traces.ask)
        publisher.start()
        publisher.join()
        loop.step(WARM + 1)
        assert is_on()
        loop.step()
    assert on == [publisher.ident]


def test_trying_a_mode_out_leaves_what_torch_keeps_of_all_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Entering it as `with` does, and leaving it after the program has entered one of its own, left
    torch to believe for good that one is on, which may keep it from compiling anything."""
    entered: list[object] = []
    monkeypatch.setattr(TorchDispatchMode, "__enter__", entered.append)
    assert tracer.bears_subclasses()
    assert not entered
    assert not is_on()


@pytest.mark.parametrize("error", [TypeError, AttributeError])
def test_a_torch_below_which_no_mode_can_be_tried_traces_nothing(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have ended the publisher, and all watching with it."""

    def fails(*_: object) -> object:
        raise error("in this torch")

    monkeypatch.setattr(tracer, "tracer", fails)
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 3)
        assert loop.found() is None
        assert loop.traces.is_over
        assert not run.failures


def test_what_a_forward_shows_is_summed_up_behind_its_backward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failure there would be one within the program's call, and end all watching."""

    def fails(_: object) -> None:
        raise IndexError("tried")

    monkeypatch.setattr(traces, "summary_of_forward", fails)
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 1)
        result = loop.net(torch.ones(4, 8)).cumprod(1).sum()
        result.backward()
        loop.step(2)
        assert loop.found() is None
        assert loop.traces.is_over
        assert not run.failures


def test_commands_that_are_off_trace_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    with watched() as run:
        loop = Loop(run)
        loop.traces.ask()
        loop.step(WARM + 2)
        assert loop.found() is None
