"""Since when a rank comes late, how often, and with which rhythm.

A step counts where the others wait for the rank at least half as long as they lately do in those
that cost most. How often that is, is compared on both sides of every step: the likelihood of two
rates over that of one, the best split first and then within its parts (binary segmentation; Scott
and Knott, 1974). Twice its logarithm is a chi-square where nothing has changed. Late steps that
come in flocks make it larger, so it is divided by how much more than a coin they vary (quasi-
likelihood; McCullagh and Nelder, 1989), and the chance is multiplied by the number of splits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import erfc, log, sqrt
from statistics import median

from ..format import duration
from ..statistics import binomial_tail
from ..thresholds import ranks as limits

Late = int | str
"""A rank, or a host of which all ranks are late."""


@dataclass(frozen=True, slots=True)
class LateStep:
    """Who came late in one step."""

    number: int
    ended_ns: int
    """On the monitor's clock, within a few seconds."""
    late: Mapping[Late, float]
    """Part of the step that all others waited for each, from `limits.LATE_STEP` on."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """When one of them is late."""

    first_step: int
    """The first that is known."""
    since_step: int | None
    """The first late one of those since when it is late; None: as long as it is watched."""
    known_before: int | None
    """The newest step before that one of which the collectives are known."""
    since_ns: int | None
    of_steps: float
    """Part of the steps since the last change in which it is late, 0 to 1."""
    every: int | None
    """Steps from one late step to the next; None: in nearly all steps, or without a rhythm."""
    present_from: int
    """The first step since the last change, to whichever side…"""
    present_ns: int
    """…and when it ended."""
    age_s: float | None = None
    """Since `since_ns`."""

    def dated_by(self, before: "Lateness | None") -> "Lateness":
        """With the date that was found earlier, when more of the steps around it were kept, where
        it may be the same."""
        known, since = self.known_before, self.since_step
        if before is None or before.since_step is None or known is None or since is None:
            return self
        if not known < before.since_step <= since:
            return self
        return replace(
            self,
            since_step=before.since_step,
            known_before=before.known_before,
            since_ns=before.since_ns,
        )


def lateness_of(history: Sequence[LateStep], who: Late) -> Lateness | None:
    """By the steps that are known, oldest first; None where it was late in none of them."""
    shares = [one.late.get(who, 0.0) for one in history]
    lately = [share for share in shares if share > 0][-limits.LATELY :]
    if not lately:
        return None
    least = max(limits.LATE_STEP, limits.AS_LATE * usual(lately))
    flags = [share >= least for share in shares]
    bounds = [0, *_changes(flags), len(flags)]
    rates = [sum(flags[start:end]) / (end - start) for start, end in pairwise(bounds)]
    began = len(rates) - 1
    while began > 0 and rates[began - 1] >= limits.AS_LATE * rates[-1]:
        began -= 1
    at, present = bounds[began], bounds[-2]
    every = _rhythm(history[present:], flags[present:], rates[-1])
    if every is not None and (behind := _begin_of_rhythm(flags[present:], every)):
        at = present = present + behind
    return Lateness(
        first_step=history[0].number,
        since_step=history[at].number if at else None,
        known_before=history[at - 1].number if at else None,
        since_ns=history[at].ended_ns if at else None,
        of_steps=sum(flags[present:]) / len(flags[present:]),
        every=every,
        present_from=history[present].number,
        present_ns=history[present].ended_ns,
    )


def usual(lately: Sequence[float]) -> float:
    """Half of all that is lost is lost in steps that are so late, in their unit: between pauses of
    a checkpoint jitter makes the same rank the last in as many steps, which cost nothing beside
    those."""
    left = sum(lately) / 2
    for share in sorted(lately, reverse=True):
        left -= share
        if left <= 0:
            return share
    return 0.0


def _changes(flags: Sequence[bool]) -> list[int]:
    """Where the rate of late steps became another, as indices in order. How much late steps vary is
    known once the parts are, so these are sought until both agree."""
    spread = 1.0
    while True:
        found = _splits(flags, spread)
        parts = [flags[start:end] for start, end in pairwise([0, *found, len(flags)])]
        within = _overdispersion(parts)
        if within <= spread or not found:
            return found
        spread = within


def _splits(flags: Sequence[bool], spread: float) -> list[int]:
    at = _one_split(flags, spread)
    if at is None:
        return []
    left, right = _splits(flags[:at], spread), _splits(flags[at:], spread)
    return [*left, at, *(at + one for one in right)]


def _one_split(flags: Sequence[bool], spread: float) -> int | None:
    count, least = len(flags), limits.LATE_LEAST_STEPS
    sums = [0, *accumulate(flags)]
    late = sums[-1]
    # The likelihood is largest where the steps on both sides differ.
    places = [at for at in range(least, count - least + 1) if flags[at - 1] != flags[at]]
    if not places:
        return None
    together = _log_likelihood(late, count)

    def gain(at: int) -> float:
        apart = _log_likelihood(sums[at], at) + _log_likelihood(late - sums[at], count - at)
        return apart - together

    best = max(places, key=gain)
    chance = len(places) * erfc(sqrt(max(0.0, gain(best)) / spread))
    return best if chance <= limits.CHANGED_BY_CHANCE else None


def _log_likelihood(late: int, count: int) -> float:
    """Of so many late steps at their own rate."""
    return sum(part * log(part / count) for part in (late, count - late) if part)


def _overdispersion(parts: Sequence[Sequence[bool]]) -> float:
    """How much more the late steps of ten vary than independent ones would (Pearson's chi-square
    over its degrees of freedom), 1 at the least."""
    block, squares, freedom = limits.LATE_LEAST_STEPS, 0.0, 0
    for flags in parts:
        rate, blocks = sum(flags) / len(flags), len(flags) // block
        if blocks < 2 or not 0 < rate < 1:
            continue
        for start in range(0, blocks * block, block):
            off = sum(flags[start : start + block]) - block * rate
            squares += off * off / (block * rate * (1 - rate))
        freedom += blocks - 1
    return max(1.0, squares / freedom) if freedom else 1.0


def _rhythm(history: Sequence[LateStep], flags: Sequence[bool], rate: float) -> int | None:
    """Every how many steps it is late, where the pauses between are more alike than those between
    steps that are late at random would be: a binomial tail, with the part of such pauses that lie
    as near the median. One pause is spent on the median itself."""
    if rate > limits.ALWAYS_LATE:
        return None
    late = [at for at, flag in enumerate(flags) if flag]
    pauses = [
        after - before
        for before, after in pairwise(late)
        if history[after].number - history[before].number == after - before
    ][-limits.MOST_PAUSES :]
    if len(pauses) < 2:
        return None
    middle = round(median(pauses))
    near = round(limits.IN_RHYTHM * middle)
    alike = sum(abs(pause - middle) <= near for pause in pauses)
    if middle < 2 or alike < limits.RHYTHMIC * len(pauses):
        return None
    going_on = 1 - rate
    by_chance = going_on ** (middle - near - 1) - going_on ** (middle + near)
    if binomial_tail(alike - 1, len(pauses) - 1, by_chance) > limits.BY_CHANCE:
        return None
    return middle


def _begin_of_rhythm(flags: Sequence[bool], every: int) -> int:
    """The late step behind the last pause in which it did not come so often that it was no rhythm
    yet; 0 where there is none. Steps that nobody has read only shorten a pause."""
    late = [at for at, flag in enumerate(flags) if flag]
    pauses = zip([0, *late], late, strict=False)
    longest = limits.NO_RHYTHM * every
    return max((after for before, after in pauses if after - before >= longest), default=0)


def rhythm_words(lateness: Lateness | None) -> str:
    """ " every 12 steps", where it is late now and then; else ""."""
    if lateness is None or lateness.every is None:
        return ""
    return f" every {lateness.every:,} steps"


def since_words(lateness: Lateness | None) -> str:
    """ "since step 1,240 (4 min ago)"; "" where that is not known. Collectives are read now and
    then: where it began in between, both ends are named."""
    if lateness is None or lateness.age_s is None:
        return ""
    step, before = lateness.since_step, lateness.known_before
    if step is None or before is None:
        return ""
    since = f"step {step:,}"
    if step - before > limits.DATED_WITHIN:
        since = f"between steps {before:,} and {step:,}"
    return f"since {since} ({duration(lateness.age_s)} ago)"
