"""A job's mean step, rank by rank, under one axis: what each does before the others have it, what
it waits for them, what is exchanged; and which ranks differ from the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from ..thresholds import ranks as limits
from .facts import Job, RankFacts, RankPhase
from .late import late_rank

ORDER: Final[tuple[RankPhase, ...]] = (
    "data", "other", "evaluation", "checkpoint", "forward", "backward", "optimizer",
)  # fmt: skip
"""A lane's parts before ranks meet: what is a rank's own first."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One rank's part of the mean step, ms. Together they are as long as the step on every rank:
    all leave its collectives at once."""

    rank: int
    own_ms: Mapping[RankPhase, float]
    waits_ms: float | None
    """For later ranks; None where that is not measured."""
    transfer_ms: float | None
    """Exchange that compute does not hide; None where that is not measured."""

    @property
    def step_ms(self) -> float:
        """All of it."""
        return sum(self.own_ms.values()) + (self.waits_ms or 0.0) + (self.transfer_ms or 0.0)


def lanes_of(job: Job) -> tuple[Lane, ...]:
    """Of the ranks that have made steps. The waits are the collectives'; the phases are the host's,
    less those waits: a host meets them in its backward, and where it reads a result."""
    exchange = job.exchange
    found = []
    for facts in job.ranks:
        waits = exchange.waiting(facts.rank).mean if exchange and _is_in(job, facts.rank) else None
        exposed = exchange.exposed if exchange is not None else None
        step_ms = exchange.step_ns / 1e6 if exchange is not None else facts.step_ms
        waits_ms = None if waits is None else waits * step_ms
        transfer_ms = None if exposed is None else exposed.mean * step_ms
        own_ms = max(0.0, step_ms - (waits_ms or 0.0) - (transfer_ms or 0.0))
        found.append(Lane(facts.rank, _own(facts, own_ms), waits_ms, transfer_ms))
    return tuple(found)


def _is_in(job: Job, rank: int) -> bool:
    return job.exchange is not None and rank in job.exchange.ranks


def _own(facts: RankFacts, own_ms: float) -> dict[RankPhase, float]:
    """The phases, as long together as the rank's own time: the backward gives first."""
    phases = {phase: max(0.0, facts.phases_ms.get(phase, 0.0)) for phase in ORDER}
    beyond = max(0.0, sum(phases.values()) - own_ms)
    phases["backward"] -= min(phases["backward"], beyond)
    whole = sum(phases.values())
    scale = own_ms / whole if whole else 0.0
    return {phase: ms * scale for phase, ms in phases.items()}


def standing_out(job: Job) -> tuple[int, ...]:
    """Ranks that differ from the others, the furthest first: late, ended, absent from a collective
    that stands, or far from the median in what they wait or do.

    Far is a modified z-score above `OUTLIER_Z` (Iglewicz and Hoaglin, 1993) that is also worth
    mentioning: `LEAST_LATE` of a step.
    """
    scores: dict[int, float] = {}
    for row in _rows(job):
        middle = median(row.values())
        spread = 1.4826 * median(abs(value - middle) for value in row.values())
        for rank, value in row.items():
            off = abs(value - middle)
            if off >= limits.LEAST_LATE and off > limits.OUTLIER_Z * spread:
                scores[rank] = max(scores.get(rank, 0.0), off)
    late = late_rank(job)
    named: list[int] = [*job.ended]
    if job.pending is not None:
        named += [*job.pending.outside, *(one.rank for one in job.pending.disagrees)]
    if late is not None:
        named.append(late.rank.rank)
    by_score = sorted(scores, key=lambda rank: -scores[rank])
    return tuple(dict.fromkeys([*named, *by_score]))


def _rows(job: Job) -> Sequence[Mapping[int, float]]:
    """Shares of the step by rank, a mapping for each thing that is compared."""
    exchange = job.exchange
    if exchange is not None and exchange.steps:
        waits = {rank: exchange.waiting(rank).mean for rank in exchange.ranks}
        return [waits, {rank: exchange.late(rank).mean for rank in exchange.ranks}]
    timed = [one for one in job.ranks if one.step_ms > 0]
    if not timed:
        return []
    return [
        {one.rank: one.phases_ms.get(phase, 0.0) / one.step_ms for one in timed} for phase in ORDER
    ]
