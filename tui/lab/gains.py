"""What each variant gives: rounds are blocks, every variant has one turn in each.

A machine that others use is slower for a while, and then for all variants of a round alike. So the
logarithms of the times are taken apart into what the variant does and what the round does, and what
is left over is the error of every difference (randomised complete blocks: Fisher, "The Design of
Experiments", 1935).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, isfinite, log, sqrt
from statistics import fmean, stdev
from typing import Final

from ..compare.intervals import CONFIDENCE, Estimate, student
from .turns import Turn
from .variants import AS_IS, Variant

WORTH: Final = 1.01
"""A gain whose interval lies above this is worth combining with others."""
LOSS_TOLERANCE: Final = 0.02
"""Losses of two variants whose means differ by less are called close; so are those that differ by
less than three standard deviations between turns of the program as it is."""
LOSS_CONFIDENCE: Final = 0.99
"""At which losses are called not close. Means of three turns that differ in nothing lie further
apart than three standard deviations of three turns in 7 % (Student's t, two degrees of freedom)."""
LAST_PART: Final = 0.5
"""Of the steps that all turns have, the last half are compared."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Mean loss over the steps that all turns have."""

    mean: float
    as_is: float
    steps: tuple[int, int]
    close: bool | None
    """None: turns of the program as it is differ by as much."""


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times as fast a variant is as the program is."""

    variant: Variant
    gain: float | None
    """None: not measured, or the change was not made, and the notes say why."""
    low: float
    high: float
    step_ms: float | None
    loss: Loss | None
    """None: another batch, or no loss was seen."""
    notes: tuple[str, ...]

    @property
    def is_worth(self) -> bool:
        """It is faster beyond chance, and its loss is not shown to change."""
        return self.is_faster and (self.loss is None or self.loss.close is not False)

    @property
    def is_faster(self) -> bool:
        """Beyond chance, whatever its loss."""
        return self.variant != AS_IS and self.gain is not None and self.low > WORTH


def gains(turns: Sequence[Turn], confidence: float = CONFIDENCE) -> list[Gain]:
    """Of each variant, in the order in which they first came; turns stand in order, round by round.
    The program as it is has a gain of 1."""
    variants = list(dict.fromkeys(turn.variant for turn in turns))
    rounds = {variant: [turn for turn in turns if turn.variant == variant] for variant in variants}
    per_sample = any(variant.changes_batch for variant in variants) and all(
        turn.sample_ms is not None for turn in turns if turn.step_ms is not None
    )
    made = [v for v in variants if all(turn.made or turn.step_ms is None for turn in rounds[v])]
    whole = [v for v in made if all(_time(t, per_sample) is not None for t in rounds[v])]
    logs = {v: [_log(_time(t, per_sample)) for t in rounds[v]] for v in whole}
    error, freedom = _left_over(list(logs.values()))
    found = []
    for variant in variants:
        mine = rounds[variant]
        notes = tuple(dict.fromkeys(note for turn in mine for note in _notes(turn)))
        if variant not in made:
            found.append(Gain(variant, None, 0.0, 0.0, None, None, notes))
            continue
        times = [turn.step_ms.mean for turn in mine if turn.step_ms is not None]
        step_ms = fmean(times) if times else None
        loss = None if variant.changes_batch else _loss(mine, rounds.get(AS_IS, []))
        if variant not in logs or AS_IS not in logs:
            found.append(Gain(variant, None, 0.0, 0.0, step_ms, loss, notes))
            continue
        change = fmean(logs[AS_IS]) - fmean(logs[variant])
        count = len(logs[variant])
        within = hypot(_within(rounds[AS_IS], per_sample), _within(mine, per_sample)) / count
        spread = max(error * sqrt(2 / count), within)
        half = 0.0 if variant == AS_IS else student(0.5 + confidence / 2, freedom) * spread
        found.append(
            Gain(variant, exp(change), exp(change - half), exp(change + half), step_ms, loss, notes)
        )
    return found


def _time(turn: Turn, per_sample: bool) -> Estimate | None:
    return turn.sample_ms if per_sample else turn.step_ms


def _log(estimate: Estimate | None) -> float:
    assert estimate is not None
    return log(estimate.mean)


def _within(turns: Sequence[Turn], per_sample: bool) -> float:
    """Root of the sum of the squared relative errors of the turns themselves."""
    times = [_time(turn, per_sample) for turn in turns]
    return sqrt(sum((one.error / one.mean) ** 2 for one in times if one is not None))


def _left_over(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Standard deviation of what neither the variant nor the round explains, and its degrees of
    freedom; one round leaves none, and half a percent is taken as in `compare`."""
    variants, rounds = len(rows), min(map(len, rows), default=0)
    if variants < 2 or rounds < 2:
        return 0.006, float("inf")
    cut = [row[:rounds] for row in rows]
    whole = fmean(fmean(row) for row in cut)
    of_round = [fmean(row[at] for row in cut) for at in range(rounds)]
    squares = sum(
        (row[at] - fmean(row) - of_round[at] + whole) ** 2 for row in cut for at in range(rounds)
    )
    freedom = (variants - 1) * (rounds - 1)
    return sqrt(squares / freedom), freedom


def _notes(turn: Turn) -> list[str]:
    notes = list(turn.refused)
    if turn.why_not:
        notes.append(turn.why_not)
    elif not turn.made and not turn.refused:
        notes.append("the change was not made: the program never came to where it is")
    return notes


def _loss(mine: Sequence[Turn], as_is: Sequence[Turn]) -> Loss | None:
    turns = [turn for turn in (*mine, *as_is) if turn.losses]
    if not turns or len(turns) < len(mine) + len(as_is):
        return None
    last = min(turn.losses[-1][0] for turn in turns)
    first = round(last * (1 - LAST_PART)) + 1
    means = [_mean(turn, first, last) for turn in mine]
    base = [_mean(turn, first, last) for turn in as_is]
    if None in means or None in base:
        return None
    mean = fmean(one for one in means if one is not None)
    reference = fmean(one for one in base if one is not None)
    spread = stdev([one for one in base if one is not None]) if len(base) > 1 else 0.0
    allowed = max(3 * spread, LOSS_TOLERANCE * abs(reference))
    close: bool | None = True
    if isfinite(reference) and not abs(mean - reference) <= allowed:
        by_chance = spread * sqrt(1 / len(base) + 1 / len(means))
        most = student(0.5 + LOSS_CONFIDENCE / 2, max(1, len(base) - 1)) * by_chance
        close = None if isfinite(mean) and abs(mean - reference) <= most else False
    return Loss(mean, reference, (first, last), close)


def _mean(turn: Turn, first: int, last: int) -> float | None:
    values = [loss for step, loss in turn.losses if first <= step <= last]
    return fmean(values) if values else None
