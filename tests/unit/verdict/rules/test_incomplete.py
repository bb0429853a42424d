"""Missing signals that the verdict would rest on."""

from typing import Any

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.scoring import missing_of
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, stacks, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_loop_whose_fetches_nobody_sees_is_incomplete() -> None:
    rows = even(60, forward_ms=40, backward_ms=20, fetches=0)
    finding = verdict(window(rows, loaders=())).finding
    assert (finding.kind, finding.sub) == ("incomplete", "loader")
    assert "probe.wrap" in finding.advice[0]


def test_time_that_nobody_claims_is_said() -> None:
    finding = verdict(window(even(60, **WORK, unknown_ms=5))).finding
    assert (finding.kind, finding.sub) == ("incomplete", "unattributed")
    bigger = even(60, **WORK, unknown_ms=5, other_ms=20)
    assert verdict(window(bigger)).finding.kind == "host"


LAUNCHING = even(60, data_ms=0.2, forward_ms=12, backward_ms=16, optimizer_ms=4)

LAUNCHING_ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4}


def test_a_badly_aligned_clock_is_said() -> None:
    seen = gpu_window(LAUNCHING, {**LAUNCHING_ON_GPU, "uncertain_ns": 400_000})
    assert any("not aligned well enough" in one.why for one in missing_of(seen))
    found = compute(seen)
    assert found is not None
    assert "kernel launches are the limit" in found.headline


def test_an_idle_gpu_is_not_called_the_limit_before_stacks_are_there() -> None:
    steps = even(60, data_ms=0.2, forward_ms=12, backward_ms=8, optimizer_ms=2)
    on_gpu = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 8, "optimizer_ms": 2, "lag_ms": 3}
    early = Engine().judge(gpu_window(steps, on_gpu, activity=activity(60))).finding
    assert (early.kind, early.sub) == ("incomplete", "stacks")
    main = stacks([(0.9, "forward (model.py:12)", None)])
    later = Engine().judge(gpu_window(steps, on_gpu, activity=activity(60), stacks=main)).finding
    assert later.kind == "compute"
    assert "busy 60%" in later.headline
