"""Activations that are computed again in the backward."""

from typing import Any

import pytest

from gpuwatch.tui.settings import RecomputedProducts, Settings
from gpuwatch.tui.steps import GpuMemory, MemoryPoint
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.recomputation import recomputation
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import gpu_window
from tests.unit.verdict.windows import GIB, even, window

LAYERS = RecomputedProducts(part=0.9, hidden=0)
STEP: dict[str, Any] = {"forward_ms": 120, "backward_ms": 270, "optimizer_ms": 10}


def on_host(again: RecomputedProducts | None = LAYERS, **fields: Any) -> StepWindow:
    """The forward takes 30 % of a step, the process 2 of 64 GiB."""
    held = MemoryPoint(60, 0, 2 * GIB)
    given = {"memory": (held,), "memory_limit_bytes": 64 * GIB, **fields}
    return window(even(60, **STEP), settings=Settings(recomputed_products=again), **given)


def test_activations_that_are_computed_again_are_the_verdict() -> None:
    found = recomputation(on_host())
    assert found is not None
    assert found.headline == "24% of each step computes activations again, for memory"
    assert found.share == pytest.approx(0.9 * 0.9 * 0.3)
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(1 / (1 - 0.243), abs=0.01)
    assert found.evidence[0].text.endswith("those of 90% of all products' arithmetic")
    judged = Engine().judge(on_host()).finding
    assert (judged.kind, judged.sub) == ("compute", "recomputation")


def test_how_much_the_older_kind_hides_is_estimated() -> None:
    found = recomputation(on_host(RecomputedProducts(part=0.0, hidden=12)))
    assert found is not None
    assert found.share == pytest.approx(0.8 * 0.3)
    assert "%" not in found.evidence[0].text


def test_where_memory_is_short_it_is_the_cure() -> None:
    assert recomputation(on_host(memory_limit_bytes=8 * GIB)) is None
    assert recomputation(on_host(memory_limit_bytes=None)) is None
    assert recomputation(on_host(None)) is None
    assert recomputation(on_host(RecomputedProducts(part=0.1, hidden=0))) is None


def on_gpu(peak_gib: float) -> StepWindow:
    """4 GiB stay from step to step, of 80 GiB."""
    peak = round(peak_gib * GIB)
    memory = GpuMemory(
        *(0, 60, 0, 4 * GIB, peak, 4 * GIB, peak, peak), at_backward=peak, retries=0, ooms=0
    )
    return gpu_window(
        even(60, **STEP),
        {"forward_ms": 100, "backward_ms": 290, "optimizer_ms": 10},
        settings=Settings(recomputed_products=LAYERS),
        gpu_memory=(memory,),
        gpu_memory_limit_bytes=80 * GIB,
    )


@pytest.mark.parametrize(
    ("peak_gib", "advice"),
    [(8, "without torch.utils.checkpoint"), (24, "torch.utils.checkpoint on fewer layers")],
)
def test_on_a_gpu_its_own_clock_and_memory_count(peak_gib: float, advice: str) -> None:
    found = recomputation(on_gpu(peak_gib))
    assert found is not None
    assert found.share == pytest.approx(0.9 * 0.9 * 0.25)
    assert found.advice[0].startswith(advice)
    assert "of 80 GiB of the GPU's memory are taken" in found.evidence[1].text


def test_on_a_gpu_that_is_full_it_is_the_cure() -> None:
    assert recomputation(on_gpu(60)) is None
