"""Verdicts on the GPU's clock: what the host waits and what the GPU feels are two things."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.rules.optimizer import optimizer
from gpuwatch.tui.verdict.scoring import missing_of
from tests.unit.verdict.on_gpu import activity, gpu_step, gpu_window
from tests.unit.verdict.windows import even, loader, run, stacks, window

HIDDEN = even(60, data_ms=50, forward_ms=40, backward_ms=38, optimizer_ms=4)
"""50 ms of waiting in every 132, and the GPU never ran dry: so measured on an H200."""
HIDDEN_ON_GPU = {
    "forward_ms": 45, "backward_ms": 82, "optimizer_ms": 5, "wait_ms": 50, "lag_ms": 650,
}  # fmt: skip


def test_a_hidden_wait_is_not_input_bound() -> None:
    seen = gpu_window(HIDDEN, HIDDEN_ON_GPU, loaders=(loader(0),), activity=activity(99))
    assert input_bound(seen) is None
    verdict = Engine().judge(seen)
    assert verdict.finding.kind == "compute"
    assert any("50 ms a step of waiting for data are hidden" in e.text
               for e in verdict.finding.evidence)  # fmt: skip


def test_the_same_wait_by_the_hosts_clock_alone_is_called_input() -> None:
    seen = window(HIDDEN, gpu_present=True, loaders=(loader(0),))
    found = input_bound(seen)
    assert found is not None
    assert found.share == pytest.approx(50 / 132, abs=0.01)
    assert "by the host's clock" in found.headline


def test_only_the_exposed_part_of_a_wait_counts() -> None:
    steps = even(60, data_ms=60, forward_ms=5, backward_ms=5, optimizer_ms=2)
    on_gpu = {"data_ms": 36, "forward_ms": 12, "backward_ms": 20, "optimizer_ms": 4, "wait_ms": 60}
    found = input_bound(gpu_window(steps, on_gpu))
    assert found is not None
    assert found.share == pytest.approx(36 / 72, abs=0.01)
    assert found.evidence[0].source == "event"
    assert "24 ms more of the host's wait are hidden" in found.evidence[0].text
    assert found.headline.startswith("data wait felt by the GPU is ")


LAUNCHING = even(60, data_ms=0.2, forward_ms=12, backward_ms=16, optimizer_ms=4)
LAUNCHING_ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4}


def test_a_gpu_that_keeps_up_and_idles_waits_for_launches() -> None:
    seen = gpu_window(LAUNCHING, LAUNCHING_ON_GPU, activity=activity(17.0, sm=2.0))
    found = launch(seen)
    assert found is not None
    assert found.share == pytest.approx(32 / 32.2 - 0.17, abs=0.01)
    assert found.speedup == pytest.approx(1 / (1 - found.share), rel=0.01)
    verdict = Engine().judge(seen)
    assert verdict.finding.kind == "launch"
    assert verdict.confidence > 0.8


def test_a_little_queued_work_explains_no_long_idleness() -> None:
    """Kernels issued one by one drain now and then: 0.9 ms behind at 26 ms of idling a step."""
    behind = {**LAUNCHING_ON_GPU, "lag_ms": 0.9}
    assert launch(gpu_window(LAUNCHING, behind, activity=activity(17.0))) is not None
    assert launch(gpu_window(LAUNCHING, behind, activity=activity(60.0))) is None


def test_epochs_that_begin_between_the_measured_steps_are_not_launching() -> None:
    """20 steps of 32 ms and a start-up as long as all of them: the rest of the time is its own."""
    rows = run(
        120,
        lambda n: {
            "data_ms": 0.2,
            "startup_ms": 644 * (n % 20 == 2),
            "forward_ms": 12,
            "backward_ms": 16,
            "optimizer_ms": 4,
        },
    )
    whole = window(rows, gpu_present=True, loaders=(loader(4),), activity=activity(9.0))
    measured = tuple(gpu_step(row, **LAUNCHING_ON_GPU) for row in whole.steps if not row.startup_ns)
    seen = replace(whole, gpu_steps=measured[::3])
    begins, waits = input_bound(seen), launch(seen)
    assert begins is not None
    assert waits is not None
    assert begins.share == pytest.approx(0.5, abs=0.03)
    assert waits.share == pytest.approx(0.5 - 0.09, abs=0.03)
    assert begins.speedup == pytest.approx(2.0, rel=0.05)
    assert waits.speedup == pytest.approx(1 / (1 - waits.share), rel=0.05)


@pytest.mark.parametrize(
    ("on_gpu", "told"),
    [
        ({**LAUNCHING_ON_GPU, "lag_ms": 4.0}, activity(17.0)),
        (LAUNCHING_ON_GPU, activity(95.0)),
        (LAUNCHING_ON_GPU, activity(None)),
        (LAUNCHING_ON_GPU, None),
        ({**LAUNCHING_ON_GPU, "lag_ms": None, "uncertain_ns": None}, activity(17.0)),
        ({**LAUNCHING_ON_GPU, "uncertain_ns": 900_000}, activity(17.0)),
    ],
    ids=["behind", "busy", "busy unknown", "no counters", "not aligned", "badly aligned"],
)
def test_launching_is_not_claimed_without_its_signals(on_gpu: dict, told: object) -> None:  # type: ignore[type-arg]
    assert launch(gpu_window(LAUNCHING, on_gpu, activity=told)) is None


def test_a_badly_aligned_clock_is_said() -> None:
    seen = gpu_window(LAUNCHING, {**LAUNCHING_ON_GPU, "uncertain_ns": 400_000})
    assert any("not aligned well enough" in one.why for one in missing_of(seen))
    found = compute(seen)
    assert found is not None
    assert "or launching to it" in found.headline


def test_waiting_for_the_gpu_in_item_is_nobodys_loss() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=127)
    on_gpu = {"data_ms": 0.1, "forward_ms": 46, "backward_ms": 82, "optimizer_ms": 5, "lag_ms": 120}
    seen = gpu_window(steps, on_gpu, activity=activity(99.0))
    assert host(seen) is None
    assert Engine().judge(seen).finding.kind == "compute"


def test_python_between_the_steps_is_what_the_gpu_stands_idle_for() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=30)
    on_gpu = {"data_ms": 0.1, "forward_ms": 6, "backward_ms": 9, "optimizer_ms": 1, "other_ms": 20}
    main = stacks([(0.8, "score (metrics.py:10)", "evaluate (train.py:88)")])
    found = host(gpu_window(steps, on_gpu, activity=activity(45.0), stacks=main))
    assert found is not None
    assert found.share == pytest.approx(20 / 36.1, abs=0.01)


def test_the_optimizer_by_the_gpus_clock() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=30)
    on_gpu = {"forward_ms": 16, "backward_ms": 16, "optimizer_ms": 3.0, "lag_ms": 20}
    assert optimizer(gpu_window(steps, {**on_gpu, "optimizer_ms": 1.0})) is None
    found = optimizer(gpu_window(steps, on_gpu))
    assert found is not None
    assert found.share == pytest.approx(3 / 35, abs=0.01)
    assert found.evidence[0].source == "event"


def test_too_few_measured_steps_leave_the_hosts_clock() -> None:
    seen = window(HIDDEN, gpu_present=True, loaders=(loader(0),))
    few = gpu_window(HIDDEN, HIDDEN_ON_GPU, loaders=(loader(0),)).gpu_steps[:3]
    seen = window(HIDDEN, gpu_present=True, loaders=(loader(0),), gpu_steps=few)
    assert input_bound(seen) is not None
    assert any(one.signal == "gpu clock" for one in missing_of(seen))


def test_before_the_gpus_clock_has_spoken_nothing_is_claimed() -> None:
    engine = Engine()
    early = window(HIDDEN[:40], gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert engine.judge(early).finding.kind == "warming-up"
    told = gpu_window(HIDDEN, HIDDEN_ON_GPU, loaders=(loader(0),), activity=activity(99))
    assert engine.judge(told).finding.kind == "compute"
    cut = window(HIDDEN[:50], gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert engine.judge(cut).finding.kind == "compute"


def test_a_clock_that_stays_silent_does_not_hold_the_verdict_for_ever() -> None:
    many = even(120, data_ms=50, forward_ms=40, backward_ms=38, optimizer_ms=4)
    late = window(many, gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert Engine().judge(late).finding.kind == "input"


def test_an_idle_gpu_is_not_called_the_limit_before_stacks_are_there() -> None:
    steps = even(60, data_ms=0.2, forward_ms=12, backward_ms=8, optimizer_ms=2)
    on_gpu = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 8, "optimizer_ms": 2, "lag_ms": 3}
    early = Engine().judge(gpu_window(steps, on_gpu, activity=activity(60))).finding
    assert (early.kind, early.sub) == ("incomplete", "stacks")
    main = stacks([(0.9, "forward (model.py:12)", None)])
    later = Engine().judge(gpu_window(steps, on_gpu, activity=activity(60), stacks=main)).finding
    assert later.kind == "compute"
    assert "busy 60%" in later.headline
