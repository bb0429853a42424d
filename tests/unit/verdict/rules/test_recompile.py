"""Recompilation."""

from typing import Any

import pytest

from gpuwatch.tui.messages import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.rules.recompile import guard_of, recompile
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


GUARDS = [
    ("0/0: alpha == 0.5 # y = x * alpha # ork/train.py:5 in forward", "a Python number"),
    ("0/2: s.k == 2 # return x + s.k # train.py:5 in forward (HINT: integers", "a Python number"),
    ("0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4", "shapes that vary"),
    ("0/0: L['x'].size()[0] == 3", "shapes that vary"),
    ("0/1: mode == '1' # g = lambda # t.py:18 in <lambda>", "a Python value that changes"),
    ("0/0: len(L['xs']) == 3", "a list or dict whose length varies"),
    ("0/0: GLOBAL_STATE changed: grad_mode", "gradient mode or train() and eval()"),
    ("0/0: tensor 'x' dtype mismatch. expected Float, actual Half", "tensors whose type"),
]


@pytest.mark.parametrize(("text", "advice"), GUARDS)
def test_the_guard_that_failed_is_named_with_its_remedy(text: str, advice: str) -> None:
    rows = run(120, lambda n: {**WORK, "compile_ms": 900 if n % 10 == 0 else 0})
    found = recompile(window(rows, settings=Settings(failed_guard=text)))
    assert found is not None
    assert found.advice[0].startswith(advice)
    assert "no longer held" in found.evidence[1].text
    assert not found.evidence[1].text.startswith("`0/")


def test_the_guards_place_is_shown() -> None:
    guard = guard_of(GUARDS[0][0])
    assert guard is not None
    assert guard.text == "`alpha == 0.5` no longer held (train.py:5 in forward)"


def test_without_the_guard_shapes_are_only_the_usual_reason() -> None:
    rows = run(120, lambda n: {**WORK, "compile_ms": 900 if n % 10 == 0 else 0})
    found = recompile(window(rows))
    assert found is not None
    assert "TORCH_LOGS" in found.advice[1]


def test_recompiling_is_held_against_the_same_steps_as_other_causes() -> None:
    """It began late: of the last 200 steps a quarter, of the window's a half."""
    rows = run(220, lambda n: {**WORK, "compile_ms": 100 if n > 120 and n % 10 == 0 else 0})
    found = recompile(window(rows))
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.05)
