"""A backward that goes through the graphs of earlier steps."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.growing_graph import growing_graph
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.windows import run, window

LINE = FrameShare(
    0.8,
    "_engine_run_backward (torch/autograd/graph.py:979)",
    "train (train.py:45)",
    "loss.backward(retain_graph=True)",
    "backward",
)


def steps(backward_ms: Callable[[int], float], forward_ms: Callable[[int], float]) -> Any:
    noise = random.Random(7)
    return run(
        450,
        lambda n: {
            "data_ms": 0.1,
            "forward_ms": forward_ms(n) * noise.uniform(0.9, 1.1),
            "backward_ms": backward_ms(n) * noise.uniform(0.9, 1.1),
            "optimizer_ms": 0.8,
        },
    )


def found(backward_ms: Callable[[int], float], forward_ms: Callable[[int], float]) -> Any:
    return growing_graph(window(steps(backward_ms, forward_ms)))


def steady(_: int) -> float:
    return 3.0


def test_a_graph_that_is_kept_is_the_verdict_by_what_the_backward_has_grown() -> None:
    rows = steps(lambda n: 5 + 0.12 * n, steady)
    seen = Stacks(100, (LINE,), 0, (), None, main_unplaced=0.0)
    finding: Finding = Engine().judge(window(rows, stacks=seen)).finding
    assert (finding.kind, finding.sub) == ("compute", "growing-graph")
    assert "12 ms longer with every 100 steps" in finding.headline
    assert finding.evidence[1].text == "retain_graph=True at train (train.py:45)"
    assert "detach()" in finding.advice[0]
    assert finding.share is not None
    assert finding.share > 0.7


@pytest.mark.parametrize(
    ("backward_ms", "forward_ms"),
    [
        (steady, steady),
        (lambda n: 6 + 0.024 * n, lambda n: 3 + 0.012 * n),
        (lambda n: 5 + 20 * min(1.0, n / 100), steady),
        (lambda n: 30 - 0.04 * n, steady),
    ],
    ids=["even", "batches that grow", "levels off", "becomes faster"],
)
def test_other_runs_have_no_graph_that_grows(
    backward_ms: Callable[[int], float], forward_ms: Callable[[int], float]
) -> None:
    assert found(backward_ms, forward_ms) is None


def test_a_backward_that_frees_its_graph_grows_for_another_reason() -> None:
    """Gradients that decay to denormal numbers: no freed graph is gone through again."""
    rows = steps(lambda n: 5 + 0.12 * n, steady)
    for call in ("loss.backward()", "loss.backward(retain_graph=False)"):
        frees = replace(LINE, line=call)
        assert growing_graph(window(rows, stacks=Stacks(100, (frees,), 0, (), None))) is None
    unread = replace(LINE, line="")
    assert growing_graph(window(rows, stacks=Stacks(100, (unread,), 0, (), None))) is not None
