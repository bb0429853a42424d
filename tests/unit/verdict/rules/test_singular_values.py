"""Singular values in each step."""

from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.settings import FunctionTime, StepOperations
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.singular_values import singular_values
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even

STEP = {"forward_ms": 30, "backward_ms": 10, "optimizer_ms": 2}
NORM = FunctionTime(
    "Net.spectral_norm (/home/me/train.py:50)",
    29_800, 37_200, 1_200, 28_500, 860, 860, 48, "_linalg_svd", 28_500,
)  # fmt: skip
REST = FunctionTime(
    "Net.forward (/home/me/train.py:35)",
    11_600, 1_200, 7_600, 0, 2_500, 2_100, 39, "mm", 6_000,
)  # fmt: skip


def lipschitz(busy: float = 92.0, **changed: Any) -> StepWindow:
    """A Lipschitz net on an H200 whose layers' largest singular values are in its loss."""
    norm = structs.replace(NORM, **changed)
    seen = StepOperations(6, 262, 43_200, 39_700, (norm, REST))
    return gpu_window(
        even(60, **STEP),
        {**STEP, "lag_ms": 0.1},
        settings=settings(step_operations=seen),
        activity=activity(busy, sm=30.0),
    )


@pytest.mark.parametrize("busy", [92.0, 60.0])
def test_singular_values_in_each_step(busy: float) -> None:
    """ "Not sure: launch 8 % or nothing": 3.4x by power iteration."""
    found = singular_values(lipschitz(busy))
    assert found is not None
    assert found.headline == "singular values take 60% of each step"
    assert "power iteration" in found.advice[0]
    assert found.advice[0].endswith(": Net.spectral_norm (train.py:50)")
    assert found.forecast is not None
    assert found.forecast.low == 1.0, "all of them may be needed"
    assert found.forecast.speedup == pytest.approx(1 / (1 - 0.9 * 0.6), abs=0.05)


def test_they_are_the_verdict_where_the_gpu_is_busy_with_them() -> None:
    verdict = Engine().judge(lipschitz()).finding
    assert (verdict.kind, verdict.sub) == ("compute", "singular-values")


@pytest.mark.parametrize(
    "other",
    [lipschitz(operation="mm"), lipschitz(operation_us=900), lipschitz(operation="_linalg_eigh")],
    ids=["products", "hardly any", "what has no other way that is known"],
)
def test_a_net_without_them(other: StepWindow) -> None:
    assert singular_values(other) is None
