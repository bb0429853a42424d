"""The live verdict beside the trace: confirmed, corrected, or not a trace's to say."""

from dataclasses import dataclass
from typing import Final, Literal

from ..verdict.findings import Kind
from ..verdict.format import percent
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
