"""Too early for a verdict."""

from typing import Any

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_warming_up_counts() -> None:
    assert verdict(window([])).finding.headline == "no step seen yet"
    assert verdict(window(even(8, **WORK))).finding.headline.startswith("warming up")
    assert verdict(window(even(12, **WORK))).finding.headline == "warming up (7/10)"


HIDDEN = even(60, data_ms=50, forward_ms=40, backward_ms=38, optimizer_ms=4)
"""50 ms of waiting in every 132, and the GPU never ran dry: so measured on an H200."""

HIDDEN_ON_GPU = {
    "forward_ms": 45, "backward_ms": 82, "optimizer_ms": 5, "wait_ms": 50, "lag_ms": 650,
}  # fmt: skip


def test_before_the_gpus_clock_has_been_read_nothing_is_claimed() -> None:
    engine = Engine()
    early = window(HIDDEN[:40], gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert engine.judge(early).finding.kind == "warming-up"
    reported = gpu_window(HIDDEN, HIDDEN_ON_GPU, loaders=(loader(0),), activity=activity(99))
    assert engine.judge(reported).finding.kind == "compute"
    cut = window(HIDDEN[:50], gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert engine.judge(cut).finding.kind == "compute"


def test_a_clock_that_stays_silent_does_not_hold_the_verdict_for_ever() -> None:
    many = even(120, data_ms=50, forward_ms=40, backward_ms=38, optimizer_ms=4)
    late = window(many, gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert Engine().judge(late).finding.kind == "input"
