"""The verdicts of a run so far, in words: the account of its time, and a line for each of them."""

from collections.abc import Sequence
from typing import Final

from tui.verdict.said import Held, Said
from tui.wording.numbers import count, duration, percent
from tui.wording.words import ABSTAINS, name_of

NAMED: Final = 5
"""Verdicts that the account names; the rest is "other"."""


def account(summary: Sequence[Held]) -> str:
    """ "over 3h12m: input/workers 62%, healthy 38%; its causes cost 1h10m of it"; "" before there
    was a verdict."""
    whole_ns = sum(held.ns for held in summary)
    if whole_ns <= 0 or all(held.kind in ABSTAINS for held in summary):
        return ""
    said = [f"{name_of(one.kind, one.sub)} {percent(one.share_of_time)}" for one in summary[:NAMED]]
    rest = sum(held.share_of_time for held in summary[NAMED:])
    if rest:
        said.append(f"other {percent(rest)}")
    text = f"over {duration(whole_ns / 1e9)}: {', '.join(said)}"
    costs_ns = sum(held.cost_ns or 0 for held in summary)
    return f"{text}; its causes cost {duration(costs_ns / 1e9)} of it" if costs_ns else text


def entry(said: Said) -> str:
    """ "steps 240 to 1,204, 6m12s: input/workers, 57% of that time"."""
    steps = f"step {count(said.until_step)}, "
    if said.since_step != said.until_step:
        steps = f"steps {count(said.since_step)} to {count(said.until_step)}, "
    text = f"{steps if said.until_step else ''}{lasted(said)}: "
    text += name_of(said.kind, said.sub)
    return text if said.share is None else f"{text}, {percent(said.share)} of that time"


def lasted(said: Said) -> str:
    """ "6m12s"."""
    return duration((said.until_ns - said.since_ns) / 1e9)
