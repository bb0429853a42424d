"""Which rank the others of a job wait for, and in what phase it loses its time."""

from statistics import median
from typing import Final, NamedTuple

from .snapshot import Rank

LATE_BY: Final = 0.1
"""A rank is late when it leads the others by this part of a step: less is jitter."""
CAUSES: Final = ("data", "forward", "optimizer", "other")
"""Phases in which a rank loses time of its own, the surest first. In the backward they wait for
each other; on GPUs the others' wait may show as `other`, where the host reads a loss."""
ALIKE: Final = 0.7
"""A surer phase that holds this part of the most that a rank lost is the one that is named."""


class Late(NamedTuple):
    """The rank that the others wait for."""

    rank: Rank
    phase: str
    """Where it loses most against the others."""
    ms: float
    """A step's, of that phase: its own, and the median of the others'."""
    others_ms: float


def late_of(ranks: tuple[Rank, ...]) -> Late | None:
    """The rank that spends most beyond the others in a phase before they meet in the backward; None
    where none stands out, or fewer than two are known."""
    known = [
        (rank, phases) for rank in ranks if rank.state == "live" and (phases := phases_ms(rank))
    ]
    if len(known) < 2:
        return None
    lost = [
        Late(rank, name, phases[name], median(other[name] for one, other in known if one != rank))
        for rank, phases in known
        for name in CAUSES
    ]
    most = max(late.ms - late.others_ms for late in lost)
    by_sureness = sorted(lost, key=lambda one: (CAUSES.index(one.phase), one.others_ms - one.ms))
    late = next(one for one in by_sureness if one.ms - one.others_ms >= ALIKE * most)
    return late if late.ms - late.others_ms >= LATE_BY * (late.rank.step_ms or 0.0) else None


def phases_ms(rank: Rank) -> dict[str, float]:
    """Its mean step by phases, ms; empty before its first."""
    shares = {
        "data": rank.data_share,
        "forward": rank.forward_share,
        "backward": rank.backward_share,
        "optimizer": rank.optimizer_share,
    }
    known = {name: share for name, share in shares.items() if share is not None}
    if rank.step_ms is None or len(known) < len(shares):
        return {}
    known["other"] = max(0.0, 1.0 - sum(known.values()))
    return {name: share * rank.step_ms for name, share in known.items()}
