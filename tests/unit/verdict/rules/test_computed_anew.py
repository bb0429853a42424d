"""A parametrized weight that a loop in a net computes in each turn: what is claimed of it."""

from typing import Any

import pytest

from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.computed_anew import computed_anew
from gpuwatch.tui.verdict.stack_samples import Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

LOOP = "Net.forward (net.py:9)"
NET = ("train (train.py:5)", "Module._call_impl (torch/nn/modules/module.py:1779)", LOOP)
WEIGHT = (
    "get_parametrized (torch/nn/utils/parametrize.py:401)",
    "_Orthogonal.forward (torch/nn/utils/parametrizations.py:109)",
)
OLDER = ("SpectralNorm.compute_weight (torch/nn/utils/spectral_norm.py:90)",)
HOST: dict[str, Any] = {"forward_ms": 50, "backward_ms": 45, "optimizer_ms": 5}


def stacks(count: int, below: tuple[str, ...] = WEIGHT, anew: str = LOOP) -> Stacks:
    """Of 100 samples so many of the forward in the weight."""

    def one(count: int, frames: tuple[str, ...], anew: str = "") -> StackCount:
        return StackCount(
            role="main", pid=1, thread="MainThread", frames=frames, count=count, anew=anew
        )

    rows = [
        one(count, (*NET, *below), anew),
        one(50 - count, (*NET, "linear (torch/nn/functional.py:9)")),
        one(50, ("train (train.py:6)", "backward (torch/_tensor.py:9)")),
    ]
    return summarise(rows, lambda stack: "backward" if len(stack.frames) == 2 else "forward")


def seen(count: int = 30, uses: int | None = 20, **given: Any) -> StepWindow:
    found = Settings(graph_uses=uses, parameter_device="cpu")
    return window(even(60, **HOST), stacks=stacks(count, **given), settings=found)


def found_of(given: StepWindow) -> Finding:
    found = computed_anew(given)
    assert found is not None
    return found


def test_all_turns_but_one_go_and_as_much_of_the_backward() -> None:
    found = found_of(seen())
    assert found.share == pytest.approx(2 * 0.3 * 0.95)
    assert found.forecast is not None
    assert found.forecast.kind == "at-least"
    assert 1.0 / (1 - 0.57) > found.forecast.speedup > 1.3
    assert LOOP in found.advice[0]
    assert "parametrize.cached()" in found.advice[0]
    assert "older" not in found.advice[0]
    judged = Engine().judge(seen()).finding
    assert (judged.kind, judged.sub) == ("launch", "computed-anew")


def test_the_backward_is_no_longer_than_it_is() -> None:
    assert found_of(seen(count=50)).share == pytest.approx(0.5 * 0.95 + 0.45)


def test_few_turns_give_less() -> None:
    assert found_of(seen(uses=2)).share == pytest.approx(0.3)


def test_older_hooks_know_nothing_of_the_cache() -> None:
    found = found_of(seen(below=OLDER))
    assert "torch.nn.utils.parametrizations" in found.advice[0]


@pytest.mark.parametrize("given", [{"anew": ""}, {"count": 2}], ids=["in no loop", "hardly any"])
def test_nothing_is_claimed(given: dict[str, Any]) -> None:
    assert computed_anew(seen(**given)) is None


def test_on_a_gpu_that_keeps_up_the_host_shows_the_time() -> None:
    """4.0x measured (a Cayley map in each of 60 turns, H200), where launches were said to cost
    1.4x. Of a GPU that is behind samples of the host tell nothing."""

    def on_gpu(lag_ms: float, busy: float = 70) -> StepWindow:
        parts = {"forward_ms": 50, "backward_ms": 45, "optimizer_ms": 5, "lag_ms": lag_ms}
        given: dict[str, Any] = {
            "stacks": stacks(30),
            "settings": settings(),
            "activity": activity(busy, sm=50),
        }
        return gpu_window(even(60, **HOST), parts, **given)

    found = found_of(on_gpu(0.02))
    assert (found.share or 0) > 0.5
    judged = Engine().judge(on_gpu(0.02)).finding
    assert (judged.kind, judged.sub) == ("launch", "computed-anew")
    assert computed_anew(on_gpu(60)) is None
    assert computed_anew(on_gpu(0.02, busy=98)) is None, "the host waits for other kernels there"
