"""Hand-made jobs: ranks with their phases, and what their collectives took."""

from typing import Any

from gpuwatch.tui.messages import DdpTimes
from gpuwatch.tui.verdict.job.exchange import StepExchange
from gpuwatch.tui.verdict.job.facts import ExchangeFacts, Job, RankFacts, RankPhase
from tests.unit.verdict.windows import MS

PHASES: tuple[RankPhase, ...] = (
    *("data", "forward", "backward", "optimizer", "checkpoint", "evaluation", "other"),
)
STEP_MS = 37.0


def rank(
    number: int,
    target: bool = False,
    busy: float | None = None,
    sharers: int | None = None,
    others_sm: float | None = None,
    active: float | None = None,
    sm: float | None = None,
    **phases_ms: float,
) -> RankFacts:
    """A rank whose steps take 37 ms: what its other phases leave is backward."""
    found = {phase: phases_ms.get(phase, 0.0) for phase in PHASES}
    found["backward"] = STEP_MS - sum(found.values())
    return RankFacts(
        number, 700 + number, target, STEP_MS, found, busy, sharers, "", others_sm, active, sm
    )


def exchange(
    *late: tuple[int, float], step_ms: float = STEP_MS, ranks: int = 2, **fields: Any
) -> ExchangeFacts:
    """Steps of (the rank that comes last, by how many ms): `waits` ms for all others, if given;
    `transfer_ms`, `collectives` and `bytes` of each step; `leads_ms`, by step how far rank 0's host
    is ahead."""
    waits_ms = fields.get("waits")
    steps = tuple(
        StepExchange(
            number=at + 1,
            wall_ns=round(step_ms * MS),
            collectives=fields.get("collectives", 4),
            bytes=fields.get("bytes", 4 << 20),
            transfer_ns=round(fields.get("transfer_ms", 0.7) * MS),
            waiting_ns=tuple(
                0 if one == last else round((by_ms if waits_ms is None else waits_ms) * MS)
                for one in range(ranks)
            ),
            late_ns=tuple(round(by_ms * MS) if one == last else 0 for one in range(ranks)),
            ahead_ns=_ahead_ns(at, **fields),
        )
        for at, (last, by_ms) in enumerate(late)
    )
    return ExchangeFacts(tuple(range(ranks)), steps, fields.get("ddp", ()))


def _ahead_ns(step: int, **fields: Any) -> tuple[int, ...]:
    leads_ms = fields.get("leads_ms")
    ahead_ms = fields.get("ahead_ms", ()) if leads_ms is None else (leads_ms[step], 0.0)
    return tuple(round(ms * MS) for ms in ahead_ms)


def late_each_step(last: int, by_ms: float, step_ms: float = STEP_MS) -> ExchangeFacts:
    """One rank is the last in every step."""
    return exchange(*[(last, by_ms)] * 60, step_ms=step_ms)


def job(*ranks: RankFacts, exchange: ExchangeFacts | None, on_gpu: bool = True) -> Job:
    """Of these ranks."""
    return Job(len(ranks), ranks, exchange, on_gpu)


def ddp(comm_ms: float, overlap_ms: float, **fields: Any) -> DdpTimes:
    """What DistributedDataParallel has measured in one iteration."""
    given: dict[str, Any] = {
        "iteration": 100,
        "backward_ns": 9 * MS,
        "forward_ns": MS,
        "bucket_cap_bytes": 25 << 20,
        "gradient_as_bucket_view": 0,
        "parameter_bytes": 800 << 20,
        "buckets": 32,
        **fields,
    }
    return DdpTimes(comm_ns=round(comm_ms * MS), overlap_ns=round(overlap_ms * MS), **given)
