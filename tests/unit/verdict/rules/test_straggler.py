"""Another rank is late."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.rules.straggler import straggler
from gpuwatch.tui.verdict.window import LateRank, StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even

STEPS = even(60, data_ms=0.3, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=94)
ON_GPU = {"data_ms": 0.3, "forward_ms": 2, "backward_ms": 96, "optimizer_ms": 1, "lag_ms": 90}
SPINNING = {"sm": 18, "tensor": 0, "fp32": 0, "dram": 0}


def late(**fields: Any) -> LateRank:
    given = {
        **{"rank": 2, "pid": 702, "is_target": False, "phase": "data"},
        **{"ms": 80.3, "others_ms": 0.3, "step_ms": 100.0, **fields},
    }
    return LateRank(**given)


def seen(found: LateRank | None, **told: float) -> StepWindow:
    counters = {"busy": 99.0, **SPINNING, **told}
    return gpu_window(STEPS, ON_GPU, activity=activity(**counters), late_rank=found)


def test_a_rank_that_is_late_is_the_verdict_of_those_that_wait() -> None:
    window = seen(late())
    found = straggler(window)
    assert found is not None
    assert found.share == pytest.approx(0.8)
    assert found.headline == "all ranks wait for rank 2 80% of each step"
    assert found.evidence[0].text == "rank 2 waits for data 80 ms per step, the others 0.3 ms"
    assert "waits in a collective" in found.evidence[1].text
    assert "attach 702" in found.advice[0]
    assert Engine().judge(window).finding.kind == "straggler"


def test_a_gpu_that_works_is_not_said_to_wait() -> None:
    found = straggler(seen(late(), tensor=30.0))
    assert found is not None
    assert len(found.evidence) == 1


@pytest.mark.parametrize("one", [None, late(is_target=True), late(ms=4.0), late(step_ms=0.0)])
def test_a_rank_that_is_itself_late_or_hardly_later_is_none(one: LateRank | None) -> None:
    assert straggler(seen(one)) is None


def test_a_kernel_that_only_waits_does_not_want_a_larger_batch() -> None:
    found = compute(seen(None))
    assert found is not None
    assert found.sub is None
    small = compute(seen(None, dram=9.0))
    assert small is not None
    assert small.sub == "underfilled"
