"""A loop that reads its loss in one of so many steps: a launch queue that fills, a long wait."""

from typing import Any, Final

import pytest

from gpuwatch.tui.verdict.forecast.gain import replayed
from gpuwatch.tui.verdict.stack_samples import FrameShare, StackPhase, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_step
from tests.unit.verdict.windows import run, window

LINEAR: Final = "linear (torch/nn/functional.py:9)"
READS: Final = "loss.item()"


def reading(
    every: int,
    host_ms: dict[str, float],
    device_ms: dict[str, float],
    log_ms: float = 0.0,
    **more: Any,
) -> StepWindow:
    """The host is ahead of a GPU that never idles, logs for so long in each step that reads the
    loss, and waits there until the GPU is done."""
    step_ms, own_ms = sum(device_ms.values()), sum(host_ms.values())
    waits_ms = every * (step_ms - own_ms)

    def parts(number: int) -> dict[str, float]:
        return {**host_ms, **({} if number % every else {"other_ms": waits_ms})}

    rows = run(180, parts)
    counters = activity(99.0, sm=96, tensor=2, fp32=74, dram=7)
    seen = window(rows, gpu_present=True, activity=counters, **more)
    on_gpu = tuple(
        gpu_step(
            row,
            lag_ms=((row.number - 1) % every) * (step_ms - own_ms) + 0.02,
            **device_ms,
        )
        for row in seen.steps
    )
    assert waits_ms > log_ms
    return window(rows, gpu_present=True, activity=counters, gpu_steps=on_gpu, **more)


def place(share: float, line: str, phase: StackPhase, in_net: bool = False) -> FrameShare:
    frame = LINEAR if in_net else "train (train.py:9)"
    return FrameShare(share, frame, "train (train.py:9)", line, phase, in_net=in_net)


@pytest.mark.parametrize("phase", ["forward", "other"])
def test_what_it_logs_there_is_work_whatever_its_samples_are_called(phase: StackPhase) -> None:
    """150 of 290 ms: norms of all gradients, lines that call torch count as forward. Without
    kernels the run would be 1.26 times as fast; 12x was said."""
    host = {"data_ms": 0.01, "forward_ms": 3.0, "backward_ms": 4.0, "optimizer_ms": 1.0}
    device = {"forward_ms": 12.0, "backward_ms": 16.0, "optimizer_ms": 1.0}
    wait = (290 - 80 - 150) / 290
    places = (
        place(wait, READS, "synchronisation"),
        place(150 / 290, "norms.append(torch.linalg.vector_norm(p.grad))", phase),
        place(70 / 290, "x = self.net(x)", "forward", in_net=True),
    )
    given = {"settings": settings(parameters=100), "stacks": Stacks(200, places, 0, (), None)}
    known = replayed(reading(10, host, device, 150.0, **given))
    assert known is not None
    assert 1.2 < 1 / known.with_kernels(0.0) < 1.8


@pytest.mark.parametrize("tensors", [2, 16, 150])
@pytest.mark.parametrize("samples", [True, False])
def test_tensors_of_the_optimizer_are_no_more_than_a_bound_of_the_nets(
    tensors: int, samples: bool
) -> None:
    """A linear probe, LoRA: the host takes 19 of 41 ms, and 3.5x was said."""
    host = {"data_ms": 0.01, "forward_ms": 8.0, "backward_ms": 10.0, "optimizer_ms": 1.0}
    device = {"forward_ms": 16.0, "backward_ms": 24.0, "optimizer_ms": 1.0}
    places = (place(0.5, READS, "synchronisation"), place(0.3, "", "forward", in_net=True))
    stacks = Stacks(200, places, 0, (), None) if samples else None
    known = replayed(reading(2, host, device, settings=settings(parameters=tensors), stacks=stacks))
    assert known is not None
    assert 1 / known.with_kernels(0.0) == pytest.approx(2.1, abs=0.12)
