"""A GPU below its clock."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.throttled import throttled
from gpuwatch.tui.verdict.scoring import missing_of
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even

STEPS = even(60, data_ms=0.2, forward_ms=4, backward_ms=6, optimizer_ms=1, other_ms=60)
BEHIND = {"data_ms": 0.2, "forward_ms": 24, "backward_ms": 44, "optimizer_ms": 3, "lag_ms": 90}


def slowed(busy: float | None = 100.0, **reported: Any) -> StepWindow:
    given = {
        "tensor": 60.0,
        "throttled": 0.8,
        "throttle_reasons": ("too hot",),
        "clock_lost": 0.32,
        **reported,
    }
    return gpu_window(STEPS, BEHIND, activity=activity(busy, **given))


def test_what_the_clock_lacks_is_the_bound() -> None:
    found = throttled(slowed())
    assert found is not None
    assert (found.kind, found.severity) == ("throttled", "critical")
    assert found.share == pytest.approx(0.32)
    assert found.speedup == pytest.approx(1 / 0.68)
    assert found.headline == "the GPU runs 40% below its highest clock: too hot"
    assert "cooling" in found.advice[0]
    assert Engine().judge(slowed()).finding.kind == "throttled"


def test_a_gpu_that_stands_idle_is_not_slowed() -> None:
    found = throttled(slowed(busy=50.0))
    assert found is not None
    assert found.share == pytest.approx(0.16)
    assert throttled(slowed(busy=10.0)) is None


@pytest.mark.parametrize(
    "reported",
    [
        {"throttled": 0.08, "clock_lost": 0.07},
        {"throttled": 0.0, "throttle_reasons": (), "clock_lost": 0.0},
        {"clock_lost": 0.01},
        {"clock_lost": None},
    ],
    ids=["seldom", "the power cap alone", "hardly slower", "clocks not known"],
)
def test_nothing_is_claimed(reported: dict[str, Any]) -> None:
    assert throttled(slowed(**reported)) is None


def test_clocks_that_are_not_reported_are_named() -> None:
    assert any("no clocks" in one.why for one in missing_of(slowed(clock_lost=None)))
    assert not any("no clocks" in one.why for one in missing_of(slowed()))
