"""Which steps are stamped on the device: the monitor's, in any kind of loop."""

from collections.abc import Iterator

import pytest
import torch

from gpuwatch.probe import api
from gpuwatch.probe.wire.marks import MOST_BEHIND_ONE
from tests.unit.probe.device_runs import Run, ms, on_a_device, train


@pytest.fixture
def run() -> Iterator[Run]:
    with on_a_device() as one:
        yield one


def test_a_grant_that_is_used_up_takes_the_stamper_away(run: Run) -> None:
    run.turning = False
    train(run, 20, wait_ms=7, forward=(2, 3), backward=(2, 8))
    run.reported()
    assert run.rate_limiter.stamper is not None
    for granted in (3, 1, 7):
        run.rate_limiter.stamper.grant(granted)
        train(run, 20, wait_ms=7, forward=(2, 3), backward=(2, 8))
        assert not run.host.recorder.stamps
        assert len(run.reported()) == granted


def test_a_step_that_the_loop_ends_itself_is_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a loader the update would end one, too: a grant of one was used up by what lies
    between the two."""
    run.turning = False
    monkeypatch.setattr(api, "_recorder", lambda: run.host.recorder)
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.0)

    def train(steps: int) -> None:
        for _ in range(steps):
            run.work(6, 3)
            weight.sum().backward()
            optimizer.step()
            api.step()

    train(5)
    run.reported()
    assert run.rate_limiter.stamper is not None
    run.rate_limiter.stamper.grant(1)
    train(5)
    (step,) = (one for one in run.reported() if one.number > 5)
    assert ms(step.wall_ns) == pytest.approx(6, abs=0.1)


def test_several_optimizers_step_in_one_step(run: Run) -> None:
    """Ten nets of a public REDQ, each with its own, behind one backward: a grant of three was used
    up within a third of a step, and five steps of a thousand were measured."""
    run.turning = False
    weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(10)]
    optimizers = [torch.optim.SGD([one], lr=0.0) for one in weights]

    def train(steps: int) -> None:
        for _ in range(steps):
            run.work(6, 3)
            torch.stack([one.sum() for one in weights]).sum().backward()
            for optimizer in optimizers:
                optimizer.step()

    train(5)
    run.reported()
    assert run.rate_limiter.stamper is not None
    run.rate_limiter.stamper.grant(3)
    train(10)
    measured = [one for one in run.reported() if one.number > 5]
    assert len(measured) == 2
    for step in measured:
        assert ms(step.wall_ns) == pytest.approx(6, abs=0.1)


def test_updates_of_a_graph_that_was_captured_are_steps(run: Run) -> None:
    """As PyTorch's page on CUDA graphs has it: three backwards to warm up, then the graph is
    replayed, and its optimizer steps by itself. No step ever ended."""
    run.turning = False
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    for _ in range(3):
        run.work(6, 3)
        weight.sum().backward()
        optimizer.step()
    for _ in range(2 * MOST_BEHIND_ONE):
        run.work(6, 3)
        optimizer.step()
    run.reported()
    assert run.rate_limiter.stamper is not None
    run.rate_limiter.stamper.grant(5)
    for _ in range(20):
        run.work(6, 3)
        optimizer.step()
    steps = run.reported()
    assert len(steps) == 5
    assert not run.host.recorder.stamps
    for step in steps:
        assert ms(step.wall_ns) == pytest.approx(6, abs=0.1)


def test_without_a_loader_and_an_optimizer_a_step_is_backward_to_backward(run: Run) -> None:
    weight = torch.nn.Parameter(torch.ones(3))

    class Kernels(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            run.work(6, 3)
            return x * 1

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            run.work(6, 5)
            return grad

    for _ in range(60):
        Kernels.apply(weight.sum()).backward()  # type: ignore[no-untyped-call]
    steps = run.reported()
    assert len(steps) >= 30
    assert {step.count for step in steps} == {1}
    for step in steps[5:]:
        assert ms(step.wall_ns) == pytest.approx(12, abs=0.1)
