"""The causes beside the loader, and what peers take for something else."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.window import Window
from tests.unit.verdict.windows import S, even, loader, run, stacks, step, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}
METRICS = (0.6, "spread_in_python (train.py:70)", None)
CONVOLUTION = (0.4, "conv2d (conv.py:543)", "train (train.py:31)")


def verdict(seen: Window) -> Verdict:
    return Engine().judge(seen)


def test_twenty_ms_a_step_outside_are_the_hosts() -> None:
    rows = even(60, **WORK, other_ms=20)
    said = verdict(window(rows, stacks=stacks(main=[METRICS, CONVOLUTION])))
    assert said.finding.kind == "host"
    assert said.finding.share == pytest.approx(20 / 29.7)
    assert said.finding.advice[0] == "look at spread_in_python (train.py:70)"
    assert said.confidence_word == "high"


def test_a_slow_loop_is_named_by_its_function() -> None:
    places = [
        (0.2, "spread.<locals>.<genexpr> (train.py:60)", None),
        (0.2, "Random.randrange (random.py:240)", "spread.<locals>.<genexpr> (train.py:60)"),
        (0.1, "spread (train.py:61)", None),
        CONVOLUTION,
    ]
    finding = verdict(window(even(60, **WORK, other_ms=20), stacks=stacks(main=places))).finding
    assert finding.evidence[1].text == "50% of main-thread samples are in spread (train.py:60)"


def test_a_phase_of_the_users_is_the_hosts_under_its_name() -> None:
    rows = even(60, **WORK, phases_ms={"logging": 12.0})
    finding = verdict(window(rows)).finding
    assert finding.kind == "host"
    assert 'in your phase "logging"' in finding.headline
    model = even(60, **WORK, phases_ms={"model": 12.0})
    assert verdict(window(model)).finding.kind == "healthy"


def test_waiting_for_the_gpu_is_not_python() -> None:
    rows = even(60, **WORK, other_ms=60)
    item = (0.86, "item (_tensor.py:10)", "train (train.py:40)")
    waits = window(rows, gpu_present=True, stacks=stacks(main=[item]))
    assert verdict(waits).finding.kind == "compute"
    computes = window(rows, gpu_present=True, stacks=stacks(main=[METRICS]))
    said = verdict(computes)
    assert said.finding.kind == "host"
    assert said.confidence <= 0.6
    assert any(one.text.startswith("gpu clock: not measured") for one in said.missing)
    blind = verdict(window(rows, gpu_present=True)).finding
    assert (blind.kind, blind.sub) == ("incomplete", "stacks")


def test_a_cause_is_named_by_the_first_look_that_has_its_signal() -> None:
    rows = even(60, forward_ms=1.4, backward_ms=1.5, optimizer_ms=0.2, other_ms=32)
    blind = window(rows[:59], gpu_present=True, stacks=None)
    seen = window(rows, gpu_present=True, stacks=stacks(main=[METRICS]))
    engine = Engine()
    assert engine.judge(blind).finding.kind == "incomplete"
    assert engine.judge(seen).finding.kind == "host"


def test_a_cause_is_worth_no_more_than_the_loader_leaves() -> None:
    """The loader's cap: workers that are busy 90 % of the time are next."""
    rows = even(60, **WORK, other_ms=10)
    finding = verdict(window(rows, stacks=stacks(main=[METRICS], idle=0.1))).finding
    assert finding.kind == "host"
    assert finding.speedup == pytest.approx(1 / 0.9)
    assert "would be the limit next" in finding.evidence[-1].text


def test_a_heavy_optimizer() -> None:
    rows = even(60, data_ms=1, forward_ms=10, backward_ms=20, optimizer_ms=60)
    assert verdict(window(rows)).finding.kind == "optimizer"


def test_accumulation_amortises_the_optimizer() -> None:
    part = {"forward_ms": 80, "backward_ms": 160, "optimizer_ms": 15}
    rows = even(60, **part, fetches=8, backwards=8, optimizer_steps=1)
    assert verdict(window(rows)).finding.kind == "healthy"


def test_a_slow_validation_loader_is_not_the_training_loader() -> None:
    """TraceML says input-bound, 73 %."""
    rows = run(
        100,
        lambda n: {**WORK, "evaluation_ms": 600 if n % 20 == 0 else 0, "startup_ms": 0},
    )
    said = verdict(window(rows, loaders=(loader(2),)))
    assert said.finding.kind == "evaluation"
    assert "input" not in [finding.kind for finding in said.contributors]
    assert said.finding.advice[0].startswith("evaluate every 3,")


def test_workers_that_an_evaluation_starts_are_the_evaluations() -> None:
    rows = run(
        100,
        lambda n: {
            **WORK,
            "evaluation_ms": 300 if n % 20 == 0 else 0,
            "startup_ms": 400 if n % 20 == 0 else 0,
        },
    )
    said = verdict(window(rows, loaders=(loader(2, iterations=1),)))
    assert said.finding.kind == "evaluation"
    assert "input" not in [finding.kind for finding in said.contributors]


def test_a_checkpoint_and_the_fsync_after_it() -> None:
    rows = run(
        100,
        lambda n: {
            **WORK,
            "checkpoint_ms": 40 if n % 5 == 0 else 0,
            "other_ms": 120 if n % 5 == 0 else 0.3,
        },
    )
    said = verdict(window(rows))
    assert said.finding.kind == "checkpoint"
    assert said.finding.share == pytest.approx(0.76, abs=0.02)
    assert "every 5 steps" in said.finding.evidence[0].text
    assert "host" not in [finding.kind for finding in said.contributors]


def test_a_long_checkpoint_is_said_however_rare() -> None:
    rows = run(400, lambda n: {"forward_ms": 2_000, "checkpoint_ms": 35_000 if n == 200 else 0})
    said = verdict(window(rows))
    assert said.finding.kind == "healthy"
    assert [finding.kind for finding in said.contributors] == ["checkpoint"]


def test_recompiling() -> None:
    rows = run(120, lambda n: {**WORK, "compile_ms": 900 if n % 10 == 0 else 0})
    assert verdict(window(rows)).finding.kind == "recompile"
    once = run(120, lambda n: {**WORK, "compile_ms": 900 if n in (1, 90) else 0})
    assert verdict(window(once)).finding.kind == "healthy"


def test_healthy_says_what_the_limit_is() -> None:
    said = verdict(window(even(60, **WORK), main_cpu_percent=190.0))
    assert (said.finding.kind, said.finding.severity) == ("healthy", "info")
    assert "forward and backward are the limit" in said.finding.headline
    assert "the training process uses 1.9 of 2 cores" in [e.text for e in said.finding.evidence]
    assert said.finding.advice == ()
    idle = verdict(
        window(even(60, **WORK), main_cpu_percent=100.0, machine_cpu_percent=7.0, cores=16.0)
    )
    assert "OMP_NUM_THREADS" in idle.finding.advice[0]


def test_a_quota_is_said_where_nothing_else_is_wrong() -> None:
    seen = window(even(60, **WORK), cores=2.0, cpu_throttled=0.4, run_delay=0.5)
    finding = verdict(seen).finding
    assert finding.kind == "healthy"
    assert "its CPU quota of 2 cores holds it back 40% of the time" in [
        one.text for one in finding.evidence
    ]
    assert "torch.set_num_threads(2)" in finding.advice[0]
    free = verdict(window(even(60, **WORK), cores=2.0, cpu_throttled=0.0)).finding
    assert not any("quota" in one.text for one in free.evidence)


def test_inference_knows_data_and_forward() -> None:
    parts = {"inference": True, "backwards": 0, "optimizer_steps": 0}
    fine = verdict(window(even(60, data_ms=1, forward_ms=40, **parts)))
    assert fine.finding.headline.endswith("the forward pass is the limit")
    starved = verdict(window(even(60, data_ms=40, forward_ms=10, **parts)))
    assert starved.finding.kind == "input"


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


def test_warming_up_counts() -> None:
    assert verdict(window([])).finding.headline == "no step seen yet"
    assert verdict(window(even(8, **WORK))).finding.headline.startswith("warming up")
    assert verdict(window(even(12, **WORK))).finding.headline == "warming up (7/10)"


def test_a_step_without_length_is_no_error() -> None:
    rows = [step(n, S) for n in range(1, 60)]
    assert verdict(window(rows)).finding.kind == "incomplete"
