"""How much a cause is worth, and how sure a verdict is."""

import random
from collections import defaultdict
from functools import cache
from math import sqrt
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.scoring import confidence_in_none, evidence_factor
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import gpu_window
from tests.unit.verdict.runs import two_waits
from tests.unit.verdict.windows import even, run, stacks, watch, window

SEEN = stacks([(0.5, "conv2d (conv.py:543)", None)])

EDGES = (0.0, 0.5, 0.7, 0.9, 0.97)


@cache
def trials() -> tuple[tuple[float, bool], ...]:
    """Confidence of each verdict, and whether it was right."""
    chance = random.Random(11)
    made: list[tuple[float, bool]] = []
    while len(made) < 1_000:
        data = chance.choice((0.0, 0.02, 0.04, 0.13, 0.15, 0.2, 0.3, 0.45))
        other = chance.choice((0.0, 0.0, 0.03, 0.13, 0.2, 0.3))
        if abs(data - other) < 0.03:
            continue  # no truth to be right about
        top = "input" if data > other else "host"
        truth = top if max(data, other) > 0.10 else "healthy"
        parts = two_waits(data, other, len(made), bursty=chance.random() < 0.6)
        for _, verdict in watch(run(300, parts), loaders=(), stacks=SEEN):
            if verdict.finding.kind != "warming-up":
                made.append((verdict.confidence, verdict.finding.kind == truth))
    return tuple(made)


def test_the_brier_score_is_that_of_a_judge_who_knows() -> None:
    """0.25 is a coin; always saying what is true of the base rate, about 0.08."""
    score = sum((sure - right) ** 2 for sure, right in trials()) / len(trials())
    assert score <= 0.05


def test_no_level_of_confidence_promises_much_more_than_it_keeps() -> None:
    bins: dict[float, list[tuple[float, bool]]] = defaultdict(list)
    for sure, right in trials():
        bins[max(edge for edge in EDGES if sure >= edge)].append((sure, right))
    assert len(bins) >= 4
    gaps = 0.0
    for level, reported in bins.items():
        promised = sum(sure for sure, _ in reported) / len(reported)
        kept = sum(right for _, right in reported) / len(reported)
        gaps += abs(promised - kept) * len(reported) / len(trials())
        if level >= 0.9:
            error = sqrt(promised * (1 - promised) / len(reported))
            assert promised - kept <= 0.05 + error
    assert gaps <= 0.05, "expected calibration error"


def test_few_steps_without_a_cause_are_less_sure_than_many() -> None:
    sure = [
        confidence_in_none((), window(even(rows, data_ms=1, forward_ms=99), stacks=SEEN))
        for rows in (20, 40, 300)
    ]
    assert sure == sorted(sure)
    assert sure[0] < 0.85
    assert sure[2] > 0.95


WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}

METRICS = (0.6, "spread_in_python (train.py:70)", None)


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_cause_is_worth_no_more_than_the_loader_leaves() -> None:
    """The loader's cap: workers that are busy 90 % of the time are next."""
    rows = even(60, **WORK, other_ms=10)
    finding = verdict(window(rows, stacks=stacks(main=[METRICS], idle=0.1))).finding
    assert finding.kind == "host"
    assert finding.speedup == pytest.approx(1 / 0.9)
    assert "would be the limit next" in finding.evidence[-1].text


def test_before_samples_a_verdict_beside_a_gpu_is_less_sure() -> None:
    """First verdicts of generated runs on H200s without a sample were 0.9 sure, and 40 of 48 were
    right."""
    rows, parts = even(60, forward_ms=40, other_ms=20), {"forward_ms": 40, "other_ms": 20}
    assert evidence_factor(window(rows)) == pytest.approx(0.9)
    assert evidence_factor(gpu_window(rows, parts)) == pytest.approx(0.82)
    assert evidence_factor(gpu_window(rows, parts, stacks=SEEN)) == 1.0
