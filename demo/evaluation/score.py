"""How right one tool was on one run."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.catalogue import GROWTH, Expected
from evaluation.verdict_track import (
    Judgement,
    changes,
    first_right,
    is_false_alarm,
    judged,
    kind_is_right,
    since_settled,
    sub_is_right,
)


@dataclass(frozen=True)
class Score:
    """One tool on one run; the verdict is the one at step 200, or at the end."""

    kind: str
    sub: str | None
    right: bool
    sub_right: bool | None
    """None where the truth has no sub."""
    right_or_second: bool
    """The verdict or the first thing reported beside it is right."""
    right_at_end: bool
    false_alarm: bool
    """A negative was called bound, at that verdict or in the end."""
    says_leak: bool
    """At any time it reported that memory leaks."""
    live: bool
    """It spoke while the run went on, and not only at its end."""
    first_right_steps: int | None
    """After the warm-up, to the first verdict that was right and stayed so for 50 steps."""
    first_right_s: float | None
    """The same since the tool attached."""
    changes: int
    """Of the kind, after the first settled verdict."""
    steps_settled: int
    """Steps since that."""
    confidence: float | None
    forecast: float | None
    """Steps a second after over before."""
    forecast_is: str | None
    """"estimate" or "bound"."""
    advice: str | None


@dataclass(frozen=True)
class Begun:
    """The last step before something began; steps to a verdict count from the latest of them."""

    attached: int
    """Before the tool attached."""
    warm: int
    """Of the warm-up."""
    cause: int
    """Before the cause was there; 0 where it is there from the start."""


def score(track: Sequence[Judgement], expected: Expected, begun: Begun) -> Score | None:
    """What a track is worth. None where the tool never reported anything while the cause was there.

    Memory has to grow before anybody can see it, so that is judged, and must be steady, at the end;
    a cause that comes later is judged at the end too.
    """
    looks = [look for look in track if look.step >= begun.cause]
    growth = expected.kinds[0] == GROWTH
    look = judged(looks, begun.attached, at_end=growth or begun.cause > 0)
    if look is None:
        return None
    found = first_right(looks, expected)
    settled = since_settled(looks)
    if growth and found is not None:
        settled = looks[looks.index(found) :]
    second = look.contributors[:1]
    return Score(
        kind=look.kind,
        sub=look.sub,
        right=kind_is_right(look, expected),
        sub_right=sub_is_right(look, expected),
        right_or_second=kind_is_right(look, expected) or bool(set(second) & set(expected.kinds)),
        right_at_end=kind_is_right(looks[-1], expected),
        false_alarm=is_false_alarm(look, expected) or is_false_alarm(looks[-1], expected),
        says_leak=any(each.leak for each in looks),
        live=len(looks) > 1,
        first_right_steps=max(0, found.step - max(begun.attached, begun.warm, begun.cause))
        if found
        else None,
        first_right_s=found.at_s if found else None,
        changes=changes(settled),
        steps_settled=looks[-1].step - settled[0].step if settled else 0,
        confidence=look.confidence,
        forecast=look.speedup,
        forecast_is=look.speedup_is,
        advice=look.advice,
    )
