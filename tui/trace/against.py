"""The live verdict beside the trace: confirmed, corrected, or not a trace's to say."""

from dataclasses import dataclass
from typing import Final, Literal

from ..verdict.findings import Kind
from ..verdict.format import percent
from ..verdict.statistics import binomial_tail
from ..verdict.thresholds.ranks import MOSTLY
from .job import JobProfile
from .profile import Pattern, Profile

Outcome = Literal["confirms", "corrects", "cannot say"]

PATTERN_OF: Final[dict[Kind, tuple[Pattern, ...]]] = {
    "input": ("input",),
    "launch": ("launch",),
    "sync": ("sync",),
    "h2d": ("copies",),
    "communication": ("communication",),
    "straggler": ("communication",),
    "imbalance": ("communication",),
    "host": ("host",),
    "optimizer": ("launch", "host"),
    "allocator": ("allocator", "sync"),
}
"""Which pattern each verdict leaves in a trace. An optimizer that steps slowly launches much, or
computes in Python."""
KIND_OF: Final[dict[Pattern, Kind]] = {
    "input": "input",
    "launch": "launch",
    "sync": "sync",
    "copies": "h2d",
    "communication": "communication",
    "host": "host",
    "allocator": "allocator",
}
DEVICE_BOUND: Final[tuple[Kind, ...]] = ("compute", "memory-bandwidth", "healthy")
LEAST: Final = 0.1
"""Of the step: what a verdict needs to be one (verdict.thresholds), and a pattern to be named."""
NEAR: Final = 0.6
"""A cause that has this part of the largest one's time is confirmed beside it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the trace says of the verdict."""

    says: Outcome
    kind: Kind | None
    """What the trace itself names; None where it can name nothing."""
    text: str


def against(verdict: Kind, profile: Profile) -> Comparison:
    """Compare."""
    largest = profile.patterns[0] if profile.patterns else None
    seen: Kind = "compute"
    if largest is not None and largest.share >= LEAST:
        seen = KIND_OF[largest.pattern]
    shown = f"{seen} {percent(largest.share)}" if largest is not None and seen != "compute" else ""
    if verdict in DEVICE_BOUND:
        if seen == "compute":
            computes = percent(profile.compute_ns_a_step / max(1.0, profile.step_ns))
            return Comparison("confirms", seen, f"the GPU computes {computes} of each step")
        return Comparison("corrects", seen, f"the largest part besides compute is {shown}")
    wanted = PATTERN_OF.get(verdict)
    if wanted is None:
        return Comparison("cannot say", seen, f"a few steps do not show {verdict}")
    share = sum(profile.share_of(pattern) for pattern in wanted)
    most = largest.share if largest is not None else 0.0
    if share >= LEAST and share >= NEAR * most:
        beside = f"; beside it {shown}" if seen not in (verdict, "compute") else ""
        return Comparison("confirms", verdict, f"{percent(share)} of each step{beside}")
    rest = f"the trace shows {shown}" if shown else "the GPU computes all the time"
    return Comparison("corrects", seen, f"{verdict} has {percent(share)} of each step; {rest}")


# A job's verdict beside the recordings of all its ranks.

BY_CHANCE: Final = 0.05
"""That ranks which are late at random make one of them the last so often: nine steps of ten between
two ranks. Looser than the live verdict's, which this only stands beside."""
NONE_HOLDS: Final = "no collective holds 10% of a step"
OF_THE_JOB: Final[tuple[Kind, ...]] = ("communication", "straggler", "imbalance")


def against_job(verdict: Kind, late: int | None, profile: JobProfile) -> Comparison:
    """`late`: the rank that the verdict says to be late. What nothing hides counts: transfer for
    `communication`, waiting for one rank for `straggler`, for several for `imbalance`. A few steps
    of a host with other work are no rule: one rank must be the last in more of them than chance
    would have it."""
    shares = _shares(profile)
    seen = max(shares, key=lambda kind: shares[kind], default=None)
    if seen is not None and shares[seen] < LEAST:
        seen = None
    shown = "" if seen is None else _shown(seen, shares[seen], profile)
    if verdict not in OF_THE_JOB:
        if seen is None:
            text = f"collectives stand alone {percent(profile.exposed)} of each step"
            return Comparison("confirms", None, f"no more than that: {text}")
        return Comparison("cannot say", seen, f"of collectives alone, they show {shown}")
    if not shares:
        return Comparison("cannot say", None, profile.unlike)
    latest, share = profile.latest, shares.get(verdict, 0.0)
    if seen == "straggler" and latest is not None and latest.rank != late:
        by_chance = binomial_tail(latest.late_in, profile.steps, 1 / len(profile.ranks))
        if by_chance > BY_CHANCE:
            last = f"rank {latest.rank} is the last in {latest.late_in} of {profile.steps}"
            return Comparison("cannot say", None, f"too few steps ({last}): more with --steps")
    same = verdict != "straggler" or (latest is not None and latest.rank == late)
    if same and share >= LEAST and share >= NEAR * max(shares.values()):
        return Comparison("confirms", verdict, _shown(verdict, share, profile))
    if not same and share >= LEAST:
        return Comparison("corrects", seen, f"not rank {late}: {_shown(verdict, share, profile)}")
    has = percent(share if same else 0.0)
    largest = [
        _shown(kind, part, profile)
        for kind, part in sorted(shares.items(), key=lambda row: -row[1])
        if part >= max(LEAST, NEAR * max(shares.values()))
    ]
    rest = f"they show {', and '.join(largest)}" if largest else NONE_HOLDS
    return Comparison("corrects", seen, f"{verdict} has {has} of each step; {rest}")


def _shares(profile: JobProfile) -> dict[Kind, float]:
    """By what a verdict would be; empty where the ranks' collectives are not the same. One rank is
    late where it holds most of what is waited for any, as in the live verdict."""
    transfer, waiting, latest = profile.transfer, profile.waiting, profile.latest
    if transfer is None or waiting is None:
        return {}
    late = latest.late if latest is not None else 0.0
    if late < MOSTLY * sum(one.late for one in profile.ranks):
        return {"communication": transfer, "straggler": 0.0, "imbalance": waiting}
    return {"communication": transfer, "straggler": late, "imbalance": 0.0}


def _shown(kind: Kind, share: float, profile: JobProfile) -> str:
    if kind == "communication":
        return f"transfer that nothing hides {percent(share)} of each step"
    if kind == "straggler" and (latest := profile.latest) is not None:
        text = f"all others wait for rank {latest.rank} {percent(share)} of each step"
        return f"{text}, the last in {latest.late_in} of {profile.steps}"
    return f"ranks wait for each other in turns {percent(share)} of each step"
