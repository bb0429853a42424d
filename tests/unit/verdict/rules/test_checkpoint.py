"""Checkpoints that training waits for."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.window import StepWindow
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
