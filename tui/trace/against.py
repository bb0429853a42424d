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


SLOWED: Final = 1.05
"""Steps under the profiler by those before it: from here on its own time shows in the gaps."""
HIDEABLE: Final[tuple[Pattern, ...]] = ("input", "sync", "copies")
"""What a slower host hides a part of: it waits less for what comes from elsewhere."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the trace says of the verdict."""

    says: Outcome
    kind: Kind | None
    """What the trace itself names; None where it can name nothing."""
    text: str


@dataclass(frozen=True, slots=True)
class Unslowed:
    """What the window can say of a step without the profiler, where that made steps longer.

    It slows the host (CUPTI each call, and what it displaces), not the kernels. So a step without
    it has the same compute, and as much less idle time as it is shorter. Of which pattern that time
    is cannot be seen, so what is given is the most that each can have.
    """

    compute: float
    """Share of a step, 0 to 1."""
    most: dict[Pattern, float]
    """Of a step, 0 to 1."""
    least: dict[Pattern, float]
    """As `most`, if the slower host hid no wait."""


def unslowed(profile: Profile, live_ns: float | None) -> Unslowed | None:
    """`live_ns`: of a step before the window. None where that is not known, or not shorter."""
    if not live_ns or profile.step_ns < SLOWED * live_ns:
        return None
    ns = {part.pattern: part.ns_a_step for part in profile.patterns}
    more_ns = profile.step_ns - live_ns
    fixed_ns = profile.compute_ns_a_step + ns.get("communication", 0.0)
    most: dict[Pattern, float] = {}
    for pattern, own_ns in ns.items():
        if pattern != "communication":
            own_ns += more_ns if pattern in HIDEABLE else 0.0
            own_ns = min(own_ns, max(0.0, live_ns - fixed_ns))
        most[pattern] = min(1.0, own_ns / live_ns)
    return Unslowed(
        min(1.0, profile.compute_ns_a_step / live_ns),
        most,
        {pattern: max(0.0, own_ns - more_ns) / live_ns for pattern, own_ns in ns.items()},
    )


def against(verdict: Kind, profile: Profile, live_ns: float | None = None) -> Comparison:
    """Compare. `live_ns`: of a step before the window. Where the profiler made steps longer, no
    verdict is corrected by what may be the profiler's own."""
    largest = profile.patterns[0] if profile.patterns else None
    freed = unslowed(profile, live_ns)
    seen: Kind = "compute"
    shown, least = "", 1.0
    if largest is not None and largest.share >= LEAST:
        seen, shown = KIND_OF[largest.pattern], percent(largest.share)
        if freed is not None:
            least = freed.least[largest.pattern]
            shown = _slowed(largest.share, freed.most[largest.pattern])
            if freed.most[largest.pattern] < LEAST:
                seen = "compute"
    shown = f"{seen} {shown}" if seen != "compute" else ""
    if verdict in DEVICE_BOUND:
        if seen == "compute":
            share = profile.compute_ns_a_step / max(1.0, profile.step_ns)
            computes = percent(share if freed is None else freed.compute)
            return Comparison("confirms", seen, f"the GPU computes {computes} of each step")
        text = f"the largest part besides compute is {shown}"
        return Comparison("corrects" if least >= LEAST else "cannot say", seen, text)
    wanted = PATTERN_OF.get(verdict)
    if wanted is None:
        return Comparison("cannot say", seen, f"a few steps do not show {verdict}")
    share = sum(profile.share_of(pattern) for pattern in wanted)
    most, has = 1.0, f"{percent(share)} of each step"
    if freed is not None:
        most = min(1.0, sum(freed.most.get(pattern, 0.0) for pattern in wanted))
        has = _slowed(share, most)
    near = share >= NEAR * (largest.share if largest is not None else 0.0)
    if share >= LEAST and near and most >= LEAST:
        beside = f"; beside it {shown}" if seen not in (verdict, "compute") else ""
        return Comparison("confirms", verdict, f"{has}{beside}")
    rest = f"the trace shows {shown}" if shown else "the GPU computes all the time"
    excluded = freed is None or most < LEAST or most < NEAR * least
    says: Outcome = "corrects" if excluded else "cannot say"
    return Comparison(says, seen, f"{verdict} has {has}; {rest}")


def _slowed(share: float, most: float) -> str:
    return f"{percent(share)} of each step under the profiler, at most {percent(most)} without it"


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
