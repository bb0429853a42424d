"""What every rule's finding keeps to, on any window: three pieces of evidence at most, figures."""

import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rulebook import BY_STEPS, Rule
from gpuwatch.tui.verdict.rules.stalled import stalled
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.thresholds.hysteresis import MOST_EVIDENCE
from gpuwatch.tui.verdict.window import OpenStep, StepWindow
from tests.unit.verdict.noted import CUDA
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.test_any_window import windows
from tests.unit.verdict.windows import even, loader, worker_use

RULES: list[Rule[StepWindow]] = [*BY_STEPS.causes.values(), *BY_STEPS.limits, stalled]
PART = st.one_of(st.just(0.0), st.floats(0, 100))
PERCENT = st.one_of(st.none(), st.floats(0, 100))
LINE = st.sampled_from(
    ["loss.item()", "x = x.to(dev)", "torch.cuda.empty_cache()", "att = softmax(a)", "y = f(x)"]
)


@st.composite
def gpu_windows(draw: st.DrawFn) -> StepWindow:
    parts = {f"{name}_ms": draw(PART) for name in ("data", "forward", "backward", "optimizer")}
    parts["other_ms"] = draw(PART)
    reported = {name: draw(PERCENT) for name in ("sm", "tensor", "fp32", "dram")}
    reported["pcie_rx_mb_s"] = draw(st.one_of(st.none(), st.floats(0, 30_000)))
    share = draw(st.floats(0, 1))
    main = FrameShare(share, "train (train.py:88)", None, draw(LINE))
    rest = FrameShare(1 - share, "load (dataset.py:9)", "get (dataset.py:4)", draw(LINE))
    workers = draw(st.integers(0, 8))
    fields: dict[str, Any] = {
        "activity": activity(draw(PERCENT), **reported),
        "stacks": Stacks(200, (main, rest), 200, (rest, main), draw(st.floats(0, 1))),
        "loaders": (loader(workers, batch_bytes=10_000_000, batch_tensors=80, pinned=False),),
        "workers": worker_use(workers, draw(st.floats(0, 100)), draw(st.floats(0, 1)), 1e6),
        "settings": draw(st.sampled_from([None, Settings(**CUDA)])),
        "open_step": draw(
            st.sampled_from([None, OpenStep("data", 90.0, 91.0, False, "f (a.py:1)")])
        ),
        "machine_cpu_percent": draw(PERCENT),
        "main_cpu_percent": draw(PERCENT),
    }
    on_gpu = {**parts, "lag_ms": draw(st.sampled_from([0.01, 40.0])), "wait_ms": parts["data_ms"]}
    return gpu_window(
        even(40, **{**parts, "forward_ms": parts["forward_ms"] + 1}), on_gpu, **fields
    )


@settings(max_examples=240, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seen=st.one_of(windows(), gpu_windows()))
def test_a_finding_is_short_and_its_figures_are_figures(seen: StepWindow) -> None:
    """Whatever rule it is of: making the windows takes longer than judging them by all rules."""
    if not seen.steps:
        return
    for rule in RULES:
        found = rule(seen)
        if found is not None:
            keeps_to_it(rule.__name__, found)


def keeps_to_it(rule: str, found: Finding) -> None:
    assert len(found.evidence) <= MOST_EVIDENCE, rule
    assert all(evidence.text for evidence in found.evidence), rule
    assert all(advice for advice in found.advice), rule
    for value in (found.share, found.share_low, found.share_high, found.speedup):
        assert value is None or math.isfinite(value), rule
    if found.severity != "info" and found.share is not None:
        assert found.evidence, rule
        assert found.advice, f"{rule}: a cause without a first action"
