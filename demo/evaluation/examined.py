"""What is kept of a run whose truth is measured: its switches' gains, and what was reported."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evaluation.catalogue import NOTHING_TO_FIX, Expected
from evaluation.recording import VerdictTrack
from evaluation.verdict_track import (
    UNSETTLED,
    Judgement,
    first_right,
    is_false_alarm,
    kind_is_right,
)
from generated.switches import BESIDES, WORKERS
from generated.turns import Gain
from gpuwatch.tui.model.snapshot import Snapshot

POSITIVE: Final = 1.15
"""The best gain from which a run counts as having something to fix…"""
NEGATIVE: Final = 1.05
"""…and below which it counts as having nothing."""
NEARLY: Final = 0.90
"""Any change within 10 % of the best is a right verdict."""
NOISE: Final = 1.10
"""A negative's gains must be known at least so well: their upper ends stay below this."""
NOT_MEASURED: Final = frozenset({"underfilled", "misaligned"})
"""Subs of a verdict that ask for a change that is no switch here."""
CROWDED: Final = 0.5
"""Cores that other processes use, from which a verdict of contention says something true that no
switch removes."""
Label = Literal["positive", "negative", "between", "unclear"]
"""By the best gain; "unclear" where its turns disagree too much or are cut off, or other processes
interfere."""
Mode = Literal["run", "probe", "bare"]
"""Under `gpuwatch run`, with the probe in the script, or from outside alone."""


def label_of(gains: Sequence[Gain]) -> Label:
    """What the gains make of the run."""
    if not gains:
        return "negative"
    best = max(gains, key=lambda each: each.gain)
    if best.gain >= POSITIVE:
        return "positive" if best.low >= NEGATIVE else "unclear"
    if best.gain >= NEGATIVE:
        return "between"
    return "negative" if max(each.high for each in gains) < NOISE else "unclear"


def expected_of(gains: Sequence[Gain], label: Label) -> Expected:
    """The verdicts that are right: of the changes within 10 % of the best, any one's. One that
    takes another change first, or a graph of the whole step, may be named for it, and makes none of
    these wrong."""
    if label != "positive":
        return Expected(tuple(sorted(NOTHING_TO_FIX)), None, True)
    alone = max((each.gain for each in gains if each.name not in BESIDES), default=0.0)
    # Where no change alone is worth it, the two together are the best.
    least = NEARLY * (alone if alone >= POSITIVE else max(each.gain for each in gains))
    ranked = sorted(gains, key=lambda each: -each.gain)
    near = [kind for each in ranked if each.gain >= least for kind in each.kinds]
    return Expected(tuple(dict.fromkeys(near)), None, False)


@dataclass(frozen=True)
class Examined:
    """One run."""

    name: str
    """The seed, or the script."""
    half: str
    """ "development" or "report"."""
    device: str
    gpu: str | None
    mode: Mode
    causes: tuple[str, ...]
    """That were injected; a run may have others by nature."""
    label: Label
    gains: tuple[Gain, ...]
    failed: Mapping[str, str]
    """Switches that could not be made, and why."""
    right_kinds: tuple[str, ...]
    verdict: str
    sub: str | None
    right: bool
    """Of a GPU that could do its work faster a change is asked for, too: that it is the limit is no
    answer."""
    false_bound: bool
    """Something is named as holding back a run that has nothing to fix."""
    settled: bool
    confidence: float | None
    share: float | None
    contributors: tuple[str, ...]
    first_right_steps: int | None
    first_right_s: float | None
    advice: str | None
    advised: str | None
    """The switch that the first advice asks for; None where it matches none."""
    advised_gain: float | None
    forecast: float | None
    forecast_low: float | None
    forecast_high: float | None
    forecast_is: str | None
    ledger: Mapping[str, float] = field(default_factory=dict)
    """The GPU's time by what it went into, where the monitor has it."""
    others_cores: float | None = None
    """Of the cores, those that other processes used meanwhile."""
    seconds: float = 0.0
    recording_bytes: int = 0
    about: Mapping[str, Any] = field(default_factory=dict)
    """What was measured beside: the spec, the speed of its parts, the rates."""


@dataclass(frozen=True)
class Reported:
    """What gpuwatch made of a recording."""

    looks: tuple[Judgement, ...]
    begun_step: int
    forecast: float | None
    """The last: what its first action gives."""
    interval: tuple[float | None, float | None]
    """That holds it; no upper end, or none at all, where none is known."""
    ledger: Mapping[str, float]


class Watcher(VerdictTrack):
    """Keeps what the last picture has beside its verdict."""

    def __init__(self) -> None:
        super().__init__()
        self.final: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        """A picture."""
        super().show(snapshot)
        self.final = snapshot


def judged_as(
    name: str,
    gains: Sequence[Gain],
    reported: Reported,
    advice_of: Mapping[str, str],
    others_cores: float | None,
    cut: bool = False,
    before_s: float = 0.0,
    begun_step: int | None = None,
    **facts: Any,
) -> Examined:
    """Hold what was reported against what was measured; `advice_of` has each switch's advice.

    `cut`: a turn ended before all that comes now and then had come equally often, so that nothing
    is known of the gains. `before_s`: it had been looked at so long, without a verdict, before
    its recording began, from `begun_step` on.
    """
    begun = reported.begun_step if begun_step is None else begun_step
    last = reported.looks[-1] if reported.looks else Judgement(0.0, 0, "warming-up")
    crowded = last.kind == "contention" and (others_cores or 0.0) >= CROWDED
    label = "unclear" if crowded or cut else label_of(gains)
    expected = expected_of(gains, label)
    found = first_right(reported.looks, expected)
    advised = advised_switch(last, gains, advice_of)
    # What no switch here changes (a larger batch, other kernels) is not known to be false.
    measured = {kind for each in gains for kind in each.kinds}
    known = last.kind not in NOTHING_TO_FIX or last.kind in measured
    known = known and last.sub not in NOT_MEASURED
    return Examined(
        name=name,
        label=label,
        gains=tuple(gains),
        right_kinds=expected.kinds,
        verdict=last.kind,
        sub=last.sub,
        right=kind_is_right(last, expected),
        false_bound=label == "negative" and known and is_false_alarm(last, expected),
        settled=last.kind not in UNSETTLED,
        confidence=last.confidence,
        share=last.share,
        contributors=last.contributors,
        first_right_steps=max(0, found.step - begun) if found else None,
        first_right_s=before_s + found.at_s if found else None,
        advice=last.advice,
        advised=advised.name if advised else None,
        advised_gain=advised.gain if advised else None,
        forecast=reported.forecast,
        forecast_low=reported.interval[0],
        forecast_high=reported.interval[1],
        forecast_is=last.speedup_is,
        ledger=reported.ledger,
        others_cores=others_cores,
        **facts,
    )


def advised_switch(
    look: Judgement, gains: Sequence[Gain], advice_of: Mapping[str, str]
) -> Gain | None:
    """The switch that does what the first advice says: among those whose verdict this is, else
    among all."""
    if look.advice is None:
        return None
    fits = [each for each in gains if re.search(advice_of[each.name], look.advice, re.I)]
    fits = [each for each in fits if each.name == WORKERS] or fits
    own = [each for each in fits if look.kind in each.kinds]
    return max(own or fits, key=lambda each: each.gain, default=None)
