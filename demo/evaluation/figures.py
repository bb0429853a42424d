"""What the results of an evaluation come to, for one tool."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from evaluation.catalogue import GROWTH
from evaluation.result import Result
from evaluation.score import Score

STEADY: Final = frozenset({"steady", "mixed"})
"""Families whose causes are there in every step, and so in the first 20."""
CHANGING: Final = "regime"
"""The family whose cause is not constant: it has to change the verdict."""
FOUND_LEAK_STEPS: Final = 1_250
BELOW_TRUTH: Final = 0.95
"""A bound this far below the measured gain was none."""
CONFIDENCE_BINS: Final = (0.0, 0.5, 0.8, 0.9, 1.0)
"""Low, medium, and high in two parts."""

Scored = tuple[Result, Score]


@dataclass(frozen=True)
class Bin:
    """Verdicts of about the same confidence."""

    low: float
    high: float
    verdicts: int
    confidence: float
    """Their mean."""
    right: float
    """The part of them that were right."""


def scored(results: Iterable[Result], tool: str) -> list[Scored]:
    """The results that a tool has a verdict on."""
    return [(result, result.tools[tool]) for result in results if tool in result.tools]


def positives(rows: Iterable[Scored]) -> list[Scored]:
    """Those with a bottleneck, by measurement as by construction."""
    return [row for row in rows if not row[0].negative and row[0].truth.agrees]


def negatives(rows: Iterable[Scored]) -> list[Scored]:
    """Those without any."""
    return [row for row in rows if row[0].negative and row[0].truth.agrees]


def steps_to_right(rows: Iterable[Scored]) -> list[float]:
    """Of the positives with a steady cause; infinite where the verdict never came.

    Without the probe nobody counted steps.
    """
    return [
        math.inf if score.first_right_steps is None else score.first_right_steps
        for result, score in positives(rows)
        if result.family in STEADY and score.live and result.probe
    ]


def seconds_to_right(rows: Iterable[Scored]) -> list[float]:
    """The same in seconds since the tool attached."""
    return [
        math.inf if score.first_right_s is None else score.first_right_s
        for result, score in positives(rows)
        if result.family in STEADY and score.live
    ]


def changes_a_thousand_steps(rows: Iterable[Scored]) -> float | None:
    """Of the verdict's kind, where the cause is constant. None without a settled verdict."""
    constant = [score for result, score in rows if result.family != CHANGING and score.live]
    steps = sum(score.steps_settled for score in constant)
    return 1_000 * sum(score.changes for score in constant) / steps if steps else None


def forecast_errors(rows: Iterable[Scored], kind: str | None = None) -> list[float]:
    """|forecast - measured| / measured, of right verdicts on measured bottlenecks.

    `kind`: only those that were called an "estimate", or a "bound".
    """
    return [
        abs(score.forecast / result.truth.gain_of(score.kind) - 1)
        for result, score in _forecast(rows)
        if score.forecast is not None and kind in (None, score.forecast_is)
    ]


def bounds_below_truth(rows: Iterable[Scored]) -> tuple[int, int]:
    """How many bounds the measured gain went beyond, and how many there are."""
    bounds = [
        (score.forecast, result.truth.gain_of(score.kind))
        for result, score in _forecast(rows)
        if score.forecast is not None and score.forecast_is == "bound"
    ]
    return sum(forecast < BELOW_TRUTH * gain for forecast, gain in bounds), len(bounds)


def leaks_found(rows: Iterable[Scored]) -> tuple[int, int]:
    """How many were found in time, and how many there are."""
    leaks = [score for result, score in positives(rows) if result.kinds[0] == GROWTH]
    steps = [score.first_right_steps for score in leaks if score.right_at_end]
    found = [step for step in steps if step is not None and step <= FOUND_LEAK_STEPS]
    return len(found), len(leaks)


def leak_alarms(rows: Iterable[Scored]) -> tuple[int, int]:
    """How often a leak is reported where there is none, and how many runs those are."""
    still = [score.says_leak for result, score in rows if GROWTH not in result.kinds]
    return sum(still), len(still)


def brier(rows: Iterable[Scored]) -> float | None:
    """Mean squared distance of the confidence from right (1) and wrong (0)."""
    squares = [
        (score.confidence - score.right) ** 2 for _, score in rows if score.confidence is not None
    ]
    return sum(squares) / len(squares) if squares else None


def reliability(rows: Iterable[Scored]) -> list[Bin]:
    """Confidence against the part that was right; empty bins are left out."""
    rated = [(score.confidence, score.right) for _, score in rows if score.confidence is not None]
    bins = []
    for low, high in pairwise(CONFIDENCE_BINS):
        inside = [each for each in rated if low <= each[0] < high or each[0] == high == 1.0]
        if inside:
            confidence = sum(sure for sure, _ in inside) / len(inside)
            right = sum(right for _, right in inside) / len(inside)
            bins.append(Bin(low, high, len(inside), confidence, right))
    return bins


def confusion(rows: Iterable[Scored]) -> dict[tuple[str, str], int]:
    """How often which truth was called what: an accepted kind counts as the true one."""
    counts: dict[tuple[str, str], int] = {}
    for result, score in rows:
        pair = result.kinds[0], result.kinds[0] if score.right else score.kind
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def macro_f1(rows: Iterable[Scored]) -> float | None:
    """Mean over the true kinds of the harmonic mean of precision and recall."""
    counts = confusion(rows)
    kinds = {true for true, _ in counts}
    values = []
    for kind in kinds:
        hits = counts.get((kind, kind), 0)
        missed = sum(n for (true, got), n in counts.items() if true == kind != got)
        wrongly = sum(n for (true, got), n in counts.items() if got == kind != true)
        values.append(2 * hits / (2 * hits + missed + wrongly))
    return sum(values) / len(values) if values else None


def middle(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return median(values) if values else None


def percentile_90(values: Sequence[float]) -> float | None:
    """The least value that nine in ten do not exceed; None of nothing."""
    return sorted(values)[math.ceil(0.9 * len(values)) - 1] if values else None


def _forecast(rows: Iterable[Scored]) -> list[Scored]:
    return [
        (result, score)
        for result, score in positives(rows)
        if score.right and not result.truth.by_construction
    ]
