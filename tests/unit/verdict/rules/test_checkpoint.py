"""Checkpoints that training waits for."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.rules.checkpoint import checkpoint
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.windows import run, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_checkpoint_and_the_fsync_after_it() -> None:
    rows = run(
        100,
        lambda n: {
            **WORK,
            "checkpoint_ms": 40 if n % 5 == 0 else 0,
            "other_ms": 120 if n % 5 == 0 else 0.3,
        },
    )
    judged = verdict(window(rows))
    assert judged.finding.kind == "checkpoint"
    assert judged.finding.share == pytest.approx(0.76, abs=0.02)
    assert "every 5 steps" in judged.finding.evidence[0].text
    assert "host" not in [finding.kind for finding in judged.contributors]


def test_a_long_checkpoint_is_reported_however_rare() -> None:
    rows = run(400, lambda n: {"forward_ms": 2_000, "checkpoint_ms": 35_000 if n == 200 else 0})
    judged = verdict(window(rows))
    assert judged.finding.kind == "healthy"
    assert [finding.kind for finding in judged.contributors] == ["checkpoint"]


def test_a_rare_checkpoint_is_not_told_to_come_more_often() -> None:
    """One of 32 s in 500 steps of 4 s is 1.6 % of the time: "save every 400 steps"."""
    rows = run(500, lambda n: {"forward_ms": 4_000, "checkpoint_ms": 32_000 if n == 250 else 0})
    found = checkpoint(window(rows))
    assert found is not None
    assert "another thread" in found.advice[0]
    assert len(found.advice) == 1


def test_the_runs_start_makes_two_checkpoints_a_rhythm() -> None:
    """One in the last 19 steps, of which it comes in every tenth: 1.07 s for ten of 0.18 s."""
    rows = run(29, lambda n: {"forward_ms": 184, "checkpoint_ms": 1_069 * (n % 10 == 0)})
    found = checkpoint(window(rows))
    assert found is not None
    assert found.share == pytest.approx(1_069 / (1_840 + 1_069), abs=0.01)
    uneven = run(29, lambda n: {"forward_ms": 184, "checkpoint_ms": 1_069 * (n in (4, 20))})
    other = checkpoint(window(uneven))
    assert other is None or "so far" in other.evidence[0].text


def test_an_evaluation_in_the_same_step_is_not_the_checkpoints() -> None:
    """A function that no mark shows, by the samples ten times as long as saving."""
    rows = run(
        120,
        lambda n: {
            **WORK,
            "checkpoint_ms": 20 * (n % 20 == 0),
            "other_ms": 0.3 + 200 * (n % 20 == 0),
        },
    )
    places = (
        FrameShare(0.05, "save (train.py:9)", None, "torch.save(net)", "checkpoint", 200),
        FrameShare(0.45, "estimate_loss (train.py:7)", None, "", "evaluation", 200),
        FrameShare(0.5, "linear (torch/nn/functional.py:9)", None, "", "forward", 200),
    )
    alone, both = (
        checkpoint(window(rows, stacks=Stacks(200, seen, 0, (), None)))
        for seen in (places[::2], places)
    )
    assert alone is not None
    assert alone.share == pytest.approx(220 / 420, abs=0.03)
    assert both is not None
    assert both.share == pytest.approx(40 / 420, abs=0.03)


@pytest.mark.parametrize(
    ("tensors", "held", "named"),
    [(18_452, 346_048, True), (300, 5_000, False), (2_000, 10**9, False)],
)
def test_a_checkpoint_of_thousands_of_small_tensors(tensors: int, held: int, named: bool) -> None:
    """ES-RNN has parameters of its own for each of its series: 1 s to save 0.3 MB of them."""
    rows = run(100, lambda n: {**WORK, "checkpoint_ms": 60 if n % 5 == 0 else 0})
    known = settings(parameters=tensors, parameter_bytes=held)
    found = checkpoint(window(rows, settings=known))
    assert found is not None
    assert any(text.startswith("keep them in one tensor") for text in found.advice) == named
    assert found.advice[0].startswith("save every"), "of which the forecast is"
