"""Distributed trainings with one bottleneck each, and which verdicts on them are right."""

from dataclasses import dataclass
from typing import Final

from gpuwatch.tui.model.snapshot import Snapshot

ACCUSES: Final = frozenset({"straggler", "imbalance", "communication"})
"""Kinds that a job without any of these must not be given."""


LAUNCHES: Final = frozenset({"launch", "straggler/launch"})


@dataclass(frozen=True)
class Expected:
    """What is right for the job, whichever rank is watched."""

    scenario: str
    kinds: frozenset[str]
    """Of the job's verdict, with its sub or for any; empty: any that accuses nobody."""
    late: int | None = None
    """The rank that has the cause; None: nobody may be named."""
    either_late: bool = False
    """Both have it: whichever is the slower for the moment may be named."""
    sub: str | None = None
    """In what it loses its time."""
    gpu_only: bool = False
    like: str | None = "balanced"
    """The scenario that this one is without its cause."""


SCENARIOS: Final = (
    Expected("balanced", frozenset(), like=None),
    Expected("accumulation", frozenset(), like=None),
    Expected("balanced_fsdp2", frozenset(), like=None),
    # Its exchanges stand between the layers, where nothing can hide them, and its hosts issue for
    # as long as a step takes.
    Expected(
        "tensor_parallel",
        frozenset({"communication", "compute", "launch"}),
        either_late=True,
        like=None,
    ),
    Expected("big_layers", frozenset({"communication"}), like=None),
    # Without its exchange (fsdp2_alone) a step is 24 to 30 % shorter, and then waits for its host.
    Expected(
        "fsdp2",
        frozenset({"communication"}) | LAUNCHES,
        either_late=True,
        gpu_only=True,
        like="fsdp2_alone",
    ),
    Expected("fsdp2_alone", frozenset(), gpu_only=True, like=None),
    Expected("slow_loader", frozenset({"straggler"}), late=1, sub="data"),
    Expected("sleeps", frozenset({"straggler"}), late=1, sub="other"),
    Expected("slow_python", frozenset({"straggler"}), late=0, sub="other"),
    Expected("computes_twice", frozenset({"straggler"}), late=1, sub="compute"),
    Expected(
        "shared_gpu",
        frozenset({"straggler/compute", "straggler/shared"}),
        late=1,
        gpu_only=True,
    ),
    Expected("checkpoint", frozenset({"straggler"}), late=0, sub="checkpoint"),
    Expected("uneven", frozenset({"imbalance"}), like=None),
    Expected("slow_loader_all", frozenset({"input"})),
)


@dataclass(frozen=True)
class RankVerdict:
    """The last verdict on a job, as one rank's monitor has it."""

    kind: str
    sub: str | None
    late: int | None
    share: float | None
    speedup: float | None
    headline: str
    own: str
    """Kind of the watched rank's own verdict."""
    step_ms: float | None
    transfer: float | None
    waiting: tuple[float, ...]


def verdict_of(snapshot: Snapshot) -> RankVerdict:
    """In the terms of the table."""
    job, finding = snapshot.job, snapshot.verdict.finding
    own = finding
    exchange = job.job.exchange if job is not None else None
    if job is not None:
        finding = job.finding
    transfer = exchange.transfer if exchange is not None else None
    return RankVerdict(
        kind=finding.kind,
        sub=finding.sub,
        late=job.late.rank.rank if job is not None and job.late is not None else None,
        share=finding.share,
        speedup=finding.speedup,
        headline=finding.headline,
        own=own.kind if own.sub is None else f"{own.kind}/{own.sub}",
        step_ms=None if snapshot.steps is None else 1_000 / snapshot.steps.steps_s,
        transfer=None if transfer is None else transfer.mean,
        waiting=tuple(exchange.waiting(rank).mean for rank in exchange.ranks)
        if exchange is not None
        else (),
    )


def is_right(expected: Expected, verdict: RankVerdict) -> bool:
    """Kind, culprit and its cause; nobody accused where nobody is to blame."""
    named = verdict.late != expected.late and not expected.either_late
    if named and (expected.late is not None or verdict.kind in ACCUSES):
        return False
    if not expected.kinds:
        return verdict.kind not in ACCUSES
    known = {verdict.kind, f"{verdict.kind}/{verdict.sub}"} & expected.kinds
    return bool(known) and expected.sub in (None, verdict.sub)
