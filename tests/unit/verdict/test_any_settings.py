"""Whatever a process says of its settings, a verdict comes back and its figures are figures."""

import math
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from gpuwatch.tui.model.plausible import MOST
from gpuwatch.tui.settings import LoopOperations, Settings, StepOperations
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.window import StepWindow
from tests.hostile.shapes import anything, counted
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, window

STEP: dict[str, Any] = {
    **{"data_ms": 5, "forward_ms": 30, "backward_ms": 60},
    **{"optimizer_ms": 10, "evaluation_ms": 5},
}
UNKNOWN = st.sets(
    st.sampled_from(
        [name for name in Settings.__struct_fields__ if getattr(Settings(), name) is None]
    )
)


@st.composite
def some_settings(draw: st.DrawFn) -> Settings:
    """Of everything, less what this process does not know."""
    every: Settings = counted(draw(anything(Settings)), MOST)
    return structs.replace(every, **dict.fromkeys(draw(UNKNOWN)))


def windows(seen: Settings) -> Iterator[StepWindow]:
    yield window(even(60, **STEP), settings=seen, cores=2.0, main_cpu_percent=150.0)
    yield window(even(60, **STEP), settings=seen, cores=2.0, loaders=(loader(2),))
    for busy, lag_ms in ((99.0, 80.0), (70.0, 10.0), (40.0, 0.02)):
        clock = {**STEP, "lag_ms": lag_ms}
        yield gpu_window(even(60, **STEP), clock, activity=activity(busy), settings=seen)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(some_settings())
def test_a_verdict_comes_back_of_any_settings(seen: Settings) -> None:
    for each in windows(seen):
        judged = Engine().judge(each)
        assert 0 <= judged.confidence <= 1
        for finding in (judged.finding, *judged.contributors):
            if finding.share is not None:
                assert finding.share_low is not None
                assert finding.share_high is not None
                assert 0 <= finding.share_low <= finding.share <= finding.share_high <= 1
            if finding.speedup is not None:
                assert finding.speedup >= 1
                assert math.isfinite(finding.speedup)


def test_a_loop_of_no_turns_is_none() -> None:
    """What a broken or hostile probe may send: the monitor divided by it."""
    loop = LoopOperations("loss (train.py:9)", 40_000, 7_000, 700, 0)
    step = StepOperations(1, 1_000, 100_000, 10_000, (), loop=loop)
    for each in windows(Settings(step_operations=step)):
        judged = Engine().judge(each)
        assert "loop" not in [one.sub for one in (judged.finding, *judged.contributors)]
