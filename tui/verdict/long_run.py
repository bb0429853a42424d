"""What a cause of the window's steps holds of the run's time, with pauses that these steps miss.

A window that begins behind a change of pace may hold no checkpoint, though they take half of the
time: launching that is 60 % of its steps is 30 % of the run.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..steps import Step
from .findings import Finding, Forecast, Kind
from .format import percent
from .idle_ledger import IdleLedger
from .scoring import severity_of
from .step_time import spent
from .window import StepWindow, Window

PAUSES: Final[Mapping[Kind, Callable[[Step], int]]] = {
    "checkpoint": lambda row: row.checkpoint_ns,
    "evaluation": lambda row: row.evaluation_ns,
    "recompile": lambda row: row.compile_ns,
}
"""Causes whose share is of all recent time, by what marks them in a step."""
IDLE_PAUSES: Final[tuple[Kind, ...]] = ("checkpoint", "recompile")
APART: Final[frozenset[Kind]] = frozenset({*PAUSES, "memory-growth", "straggler", "imbalance"})
"""They are not measured on the window's steps."""
WORTH_SAYING: Final = 0.97
"""A larger part of the time outside of pauses changes no figure that is shown."""

OF_A_STEP: Final = re.compile(r",? (about >?[\d.]+x|>?[\d.]+x or more)(?= \(|[:,]|$)")
"""What an action gives, in its own words: of a step without a pause. The forecast has the run's."""

Found = Mapping[Kind, Finding | None]


def in_the_long_run(found: Found, left: float) -> Found:
    """The findings, by kind, with those of the window's steps as parts of the run's time, by
    `left_by_pauses`."""
    if left > WORTH_SAYING:
        return found
    return {
        kind: one if one is None or kind in APART else _part_of(one, left)
        for kind, one in found.items()
    }


def ledger_in_the_long_run(ledger: IdleLedger, found: Found, window: StepWindow) -> IdleLedger:
    """Where the GPU's time goes, of the run: while a checkpoint is written or a graph compiled
    nothing runs. An evaluation uses it about as much as the rest of the time does."""
    idle = {kind: found.get(kind) for kind in IDLE_PAUSES}
    left = left_by_pauses(idle, window)
    if left > WORTH_SAYING:
        return ledger
    shares = {part: share * left for part, share in ledger.shares.items()}
    shares["pauses"] += 1.0 - left
    return replace(ledger, shares=shares)


def of_the_run(finding: Finding, share: float, left: float) -> Finding:
    """A finding without a share of its own, with what it holds of the run's time in its clause."""
    if left > WORTH_SAYING or not share:
        return finding
    return replace(finding, headline=_clause(finding, share))


def _clause(finding: Finding, share: float) -> str:
    return f"{finding.headline} ({percent(share)} of the run's time)"


def left_by_pauses(found: Found, window: Window) -> float:
    """Time outside of pauses in the run as part of that in the window, 0 to 1; 1 where the window
    holds as many, or is of samples."""
    if not isinstance(window, StepWindow):
        return 1.0
    run = here = 0.0
    for kind, length in PAUSES.items():
        finding = found.get(kind)
        if finding is not None and finding.share:
            # What clings to a pause, a copy or an fsync, is in the finding, and in the window.
            run += min(finding.share, _part(window.all_recent, length))
            here += _part(window.steps, length)
    return 1.0 if run <= here or here >= 1.0 else max(0.0, 1.0 - run) / (1.0 - here)


def _part(rows: Sequence[Step], length: Callable[[Step], int]) -> float:
    return sum(map(length, rows)) / max(1, spent(rows).wall_ns)


def _part_of(finding: Finding, left: float) -> Finding:
    if finding.share is None:
        return finding
    share, low, high = finding.share * left, finding.share_low, finding.share_high
    return replace(
        finding,
        severity=severity_of(share),
        share=share,
        share_low=None if low is None else low * left,
        share_high=None if high is None else high * left,
        speedup=None if finding.speedup is None else _slower(finding.speedup, left),
        headline=_clause(finding, share),
        forecast=None if finding.forecast is None else _forecast(finding.forecast, left),
        advice=tuple(OF_A_STEP.sub("", text) for text in finding.advice),
    )


def _forecast(forecast: Forecast, left: float) -> Forecast:
    high = None if forecast.high is None else _slower(forecast.high, left)
    return Forecast(_slower(forecast.speedup, left), _slower(forecast.low, left), high)


def _slower(speedup: float, left: float) -> float:
    """Of the run, where so much faster goes what is left of its time (Amdahl)."""
    return 1.0 / (1.0 - left * (1.0 - 1.0 / speedup))
