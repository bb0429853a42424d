"""Several backwards of one step through one graph."""

from typing import Any

import pytest

from gpuwatch.tui.settings import RepeatedBackward, Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.repeated_backward import repeated_backward
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

STEP: dict[str, Any] = {"forward_ms": 100, "backward_ms": 280, "optimizer_ms": 20}
THREE = RepeatedBackward(part=0.6, backwards=3)
CALLED = FrameShare(
    *(0.7, "_engine_run_backward (torch/autograd/graph.py:979)", "Trainer.train (main.py:70)"),
    phase="backward",
    samples=100,
)


def seen(again: RepeatedBackward | None = THREE) -> StepWindow:
    stacks = Stacks(100, (CALLED,), 0, (), None, main_unplaced=0.0)
    return window(even(60, **STEP), settings=Settings(repeated_backward=again), stacks=stacks)


def test_backwards_through_one_graph_are_the_verdict() -> None:
    found = repeated_backward(seen())
    assert found is not None
    assert found.headline == "going back through a graph again takes 40% of each step"
    assert found.share == pytest.approx(0.7 * 0.95 * 0.6)
    assert found.advice[0].endswith(", in Trainer.train (main.py:70)")
    assert found.evidence[0].text.startswith("3 backwards of a step share a graph: 60% of")
    judged = Engine().judge(seen()).finding
    assert (judged.kind, judged.sub) == ("compute", "repeated-backward")


@pytest.mark.parametrize("again", [None, RepeatedBackward(part=0.05, backwards=2)])
def test_a_small_part_is_nothing(again: RepeatedBackward | None) -> None:
    assert repeated_backward(seen(again)) is None


@pytest.mark.parametrize("part", [-1.0, 1e300, float("nan")])
def test_what_no_probe_would_send_is_no_part(part: float) -> None:
    found = repeated_backward(seen(RepeatedBackward(part, 0)))
    assert found is None or 0 <= (found.share or 0.0) <= 1


@pytest.mark.parametrize("busy", [99.0, 50.0, None])
def test_on_a_gpu_each_is_launched_again(busy: float | None) -> None:
    given = gpu_window(
        even(60, **STEP),
        {**STEP, "lag_ms": 80.0},
        activity=activity(busy),
        settings=Settings(repeated_backward=THREE),
    )
    assert repeated_backward(given) is not None
