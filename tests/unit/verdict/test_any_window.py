"""Whatever a session hands over, a verdict comes back and its figures are figures."""

import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.step_time import spent
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import loader, run, stacks, window, worker_use

MS = st.one_of(st.just(0.0), st.floats(0, 20_000))
PARTS = st.fixed_dictionaries(
    {f"{name}_ms": MS for name in ("data", "forward", "backward", "optimizer", "other")},
    optional={
        **{f"{name}_ms": MS for name in ("startup", "evaluation", "checkpoint", "compile")},
        "unknown_ms": MS,
        "count": st.integers(1, 50),
        "fetches": st.integers(0, 8),
        "inference": st.booleans(),
        "phases_ms": st.dictionaries(st.sampled_from(["logging", "model", "data"]), MS),
    },
)
PERCENT = st.one_of(st.none(), st.floats(0, 800))
YES_OR_NO = st.one_of(st.none(), st.booleans())
SETTINGS = st.builds(
    Settings,
    threads=st.one_of(st.none(), st.integers(1, 256)),
    matmul_precision=st.sampled_from([None, "highest", "high"]),
    deterministic=YES_OR_NO,
    anomaly=YES_OR_NO,
    autocast=st.sampled_from([None, "", "bfloat16", "float16"]),
    scaler=YES_OR_NO,
    optimizer=st.sampled_from([None, "AdamW"]),
    foreach=YES_OR_NO,
    fused=YES_OR_NO,
    parameters=st.one_of(st.none(), st.integers(0, 5_000)),
    parameter_bytes=st.one_of(st.none(), st.integers(0, 2**40)),
    parameter_dtype=st.sampled_from([None, "float32", "bfloat16"]),
    parameter_device=st.sampled_from([None, "cpu", "cuda"]),
    capability=st.sampled_from([None, 70, 90]),
    set_to_none=YES_OR_NO,
)


@st.composite
def windows(draw: st.DrawFn) -> StepWindow:
    kinds = draw(st.lists(PARTS, min_size=1, max_size=4))
    rows = run(draw(st.integers(0, 60)), lambda n: dict(kinds[n % len(kinds)]))
    workers = draw(st.one_of(st.none(), st.integers(0, 64)))
    fields: dict[str, Any] = {
        "loaders": draw(st.sampled_from([(), (loader(workers),)])),
        "cores": draw(st.one_of(st.none(), st.floats(0.1, 256))),
        "main_cpu_percent": draw(PERCENT),
        "machine_cpu_percent": draw(PERCENT),
        "gpu_present": draw(st.booleans()),
        "settings": draw(st.one_of(st.none(), SETTINGS)),
    }
    if draw(st.booleans()):
        fields["workers"] = worker_use(workers or 0, draw(st.floats(0, 100)), draw(st.floats(0, 1)))
    if draw(st.booleans()):
        place = (draw(st.floats(0, 1)), draw(st.sampled_from(["read (a.py:1)", "x", ""])), None)
        fields["stacks"] = stacks([place], [place], draw(st.one_of(st.none(), st.floats(0, 1))))
    return window(rows, **fields)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(windows(), windows())
def test_a_verdict_comes_back(first: StepWindow, second: StepWindow) -> None:
    engine = Engine()
    for seen in (first, second, second):
        judged = engine.judge(seen)
        assert 0 <= judged.confidence <= 1
        for finding in (judged.finding, *judged.contributors):
            assert finding.headline
            if finding.share is not None:
                assert finding.share_low is not None
                assert finding.share_high is not None
                assert 0 <= finding.share_low <= finding.share <= finding.share_high <= 1
            if finding.speedup is not None:
                assert finding.speedup >= 1
                assert math.isfinite(finding.speedup)
            for evidence in finding.evidence:
                assert evidence.value is None or math.isfinite(evidence.value)
        for note in judged.notes:
            assert note.text
            assert note.cost is None or note.cost
        shares = sum(held.share_of_time for held in engine.summary())
        assert math.isclose(shares, 1.0)


@settings(max_examples=100, deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=4))
def test_phases_add_up_to_the_wall_time(kinds: list[dict[str, Any]]) -> None:
    for parts in kinds:
        parts.pop("unknown_ms", None)
    total = spent(run(20, lambda n: dict(kinds[n % len(kinds)])))
    assert total.attributed_ns == total.wall_ns
