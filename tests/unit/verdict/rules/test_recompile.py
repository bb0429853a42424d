"""Recompilation."""

from typing import Any

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import run, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_recompiling() -> None:
    rows = run(120, lambda n: {**WORK, "compile_ms": 900 if n % 10 == 0 else 0})
    assert verdict(window(rows)).finding.kind == "recompile"
    once = run(120, lambda n: {**WORK, "compile_ms": 900 if n in (1, 90) else 0})
    assert verdict(window(once)).finding.kind == "healthy"
