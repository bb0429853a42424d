"""What each change to a run gives, from turns: the run as it is, and between with a change."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median
from typing import Final

Turn = tuple[str, float]
"""The change that was made ("": none), and samples a second."""

ERRORS: Final = 2.0
"""Standard errors either side of a gain, from its turns."""
KNOWN: Final = 0.05
"""A gain's standard errors, as part of it, from which it is known."""
NEAR: Final = 0.80
"""Of the best gain: a change below it, and by more than its turns may be off, is not the best."""
FURTHER: Final = 3
"""So many times the turns that each change near the best takes anyhow, while it is not known."""


@dataclass(frozen=True)
class Gain:
    """Of one switch: samples a second with it, over those without."""

    name: str
    kinds: tuple[str, ...]
    gain: float
    low: float
    high: float


def gains_of(turns: Sequence[Turn], kinds: Mapping[str, tuple[str, ...]]) -> list[Gain]:
    """From samples a second, turn by turn: every other turn is the run as it is (""), and each of
    the rest is held against the two beside it, since other processes come and go.

    The interval comes from how far turns of the run as it is are from the next of them.
    """
    noise = noise_of(turns)
    found = []
    for name, each in _ratios(turns).items():
        spread = _spread(noise, len(each))
        gain = median(each)
        ends = math.exp(gain - spread), math.exp(gain + spread)
        found.append(Gain(name, kinds[name], math.exp(gain), *ends))
    return found


def noise_of(turns: Sequence[Turn]) -> float:
    """How far turns of the run as it is lie apart: the standard deviation of one, as part of its
    rate, from what each differs from the next."""
    base = [math.log(rate) for _, rate in turns[::2]]
    steps = [(after - before) ** 2 for before, after in pairwise(base)]
    return math.sqrt(mean(steps) / 2) if steps else 0.0


def next_turns(
    turns: Sequence[Turn], names: Collection[str], each: int, late: bool = False
) -> list[str]:
    """The changes that take another turn: all take one, those near the best `each`, and up to
    `FURTHER` times as many while their gains are not known, unless it is `late`. None: the turns
    are over."""
    ratios = _ratios(turns)
    if missing := [name for name in names if name not in ratios]:
        return missing
    if not ratios:
        return []
    noise = noise_of(turns)
    least = max(median(found) for found in ratios.values()) + math.log(NEAR)
    near = {
        name: found
        for name, found in ratios.items()
        if median(found) >= least - _spread(noise, len(found))
    }
    fewest = min(len(found) for found in near.values())
    known = _spread(noise, fewest) <= KNOWN
    if fewest >= (each if known or late else FURTHER * each):
        return []
    return [name for name, found in near.items() if len(found) == fewest]


def _ratios(turns: Sequence[Turn]) -> dict[str, list[float]]:
    """Of each change, turn by turn: the logarithm of what it gave."""
    rates = [math.log(rate) for _, rate in turns]
    found: dict[str, list[float]] = {}
    for at in range(1, len(turns), 2):
        beside = (rates[at - 1] + rates[at + 1]) / 2
        found.setdefault(turns[at][0], []).append(rates[at] - beside)
    return found


def _spread(noise: float, turns: int) -> float:
    """`ERRORS` standard errors of a gain from so many turns, as part of it."""
    return ERRORS * noise * math.sqrt(1.5 / turns)
