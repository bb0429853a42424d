"""cuDNN tries its kernels anew for batches that differ in size."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.settings import FunctionTime, StepOperations
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.tried_kernels import tried_kernels
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader

STEP = {"forward_ms": 140, "backward_ms": 810, "optimizer_ms": 5}
HEAD = FunctionTime(
    "EMGNet.forward (/home/me/train.py:126)",
    508_000, 508_000, 418_000, 0, 550, 550, 15, "convolution_backward", 418_000,
)  # fmt: skip
BLOCK = FunctionTime(
    "Block.forward (/home/me/train.py:114)",
    448_000, 440_000, 379_000, 0, 14_000, 9_000, 192, "convolution_backward", 377_000,
)  # fmt: skip
SEEN = StepOperations(2, 312, 957_000, 949_000, (HEAD, BLOCK))
ONCE = structs.replace(SEEN, steps=1, wall_us=960_000)


def sounds(busy: float = 3.0, **changed: Any) -> StepWindow:
    """A ResNet over sounds of any length on an H200."""
    given = {"cudnn_benchmark": True, "step_operations": SEEN, **changed}
    return gpu_window(
        even(12, **STEP),
        {**STEP, "lag_ms": 0.05},
        settings=settings(**given),
        activity=activity(busy, sm=busy / 2),
    )


def test_kernels_that_are_tried_for_each_size_are_no_launches() -> None:
    """ "Launch 95 %, a CUDA graph 6.5x": 40x by leaving benchmark off."""
    found = tried_kernels(sounds())
    assert found is not None
    assert found.advice[0].startswith("torch.backends.cudnn.benchmark = False")
    assert found.share == pytest.approx(0.96, abs=0.02)
    assert "15 operations of EMGNet.forward (train.py:126)" in found.evidence[1].text
    assert found.forecast is not None
    assert found.forecast.high is None, "at least"
    assert found.forecast.speedup > 5
    verdict = Engine().judge(sounds()).finding
    assert (verdict.kind, verdict.sub) == ("launch", "tried-kernels")


def test_one_traced_step_is_enough_where_all_take_as_long() -> None:
    """Steps of 1.1 s: the second was traced 17 s into the run."""
    assert tried_kernels(sounds(step_operations=ONCE)) is not None
    slow_once = structs.replace(ONCE, wall_us=5_000_000)
    assert tried_kernels(sounds(step_operations=slow_once)) is None, "its sizes come again"
    few = replace(sounds(step_operations=ONCE), steps=sounds().steps[:4])
    assert tried_kernels(few) is None


@pytest.mark.parametrize(
    "other",
    [
        sounds(cudnn_benchmark=False),
        sounds(step_operations=None),
        sounds(step_operations=structs.replace(SEEN, steps=1)),
        sounds(
            step_operations=structs.replace(
                SEEN, functions=(structs.replace(BLOCK, host_us=9_600), HEAD)[:1]
            )
        ),
        sounds(
            step_operations=structs.replace(
                SEEN, functions=(structs.replace(BLOCK, operation_us=9_600),)
            )
        ),
        sounds(busy=98.0),
        replace(sounds(), loaders=(loader(4, varies=False),)),
    ],
    ids=[
        "off",
        "not traced",
        "one step, of the first",
        "launched in 50 us each",
        "a read beside them",
        "the GPU works",
        "batches of one size",
    ],
)
def test_what_is_launched_is_not_tried(other: StepWindow) -> None:
    assert tried_kernels(other) is None
