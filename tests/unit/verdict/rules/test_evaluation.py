"""Evaluation inside training."""

from typing import Any

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import loader, run, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


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
