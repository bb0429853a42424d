"""The fake run as one rank of eight on a host."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import msgspec

from gpuwatch.tui.model.snapshot import JobVerdict, Rank, Snapshot
from gpuwatch.tui.timeseries.series import Series
from gpuwatch.tui.timeseries.writer import Growing
from gpuwatch.tui.verdict.job.exchange import StepExchange
from gpuwatch.tui.verdict.job.facts import (
    ExchangeFacts,
    Job,
    RankFacts,
    RankPhase,
)
from gpuwatch.tui.verdict.job.late import by_phases, late_rank
from gpuwatch.tui.verdict.rules.straggler import job_finding
from tests.tui.fake_run import GIB, HELLO, STEP_MS, S, busy
from tests.tui.gpu_states import h200, series_of_gpu

RANKS = 8
LATE = 3


def eight_ranks(snapshot: Snapshot) -> Snapshot:
    """We watch rank 3, which waits for data while the others wait for it."""
    ranks = tuple(a_rank(i, snapshot) for i in range(RANKS))
    hello = msgspec.structs.replace(HELLO, rank=LATE, local_rank=LATE, world_size=RANKS)
    run = h200(snapshot)
    return replace(
        run,
        hello=hello,
        ranks=ranks,
        world_size=RANKS,
        job=late_job(ranks, run),
        gpus=(msgspec.structs.replace(run.gpus[0], index=LATE),),
        activity=tuple(msgspec.structs.replace(one, index=LATE) for one in run.activity),
        series=series_of_gpu(LATE, snapshot.t_ns),
    )


def late_job(ranks: tuple[Rank, ...], run: Snapshot) -> JobVerdict:
    """By their phases: the late one waits for data."""
    facts = tuple(facts_of(rank) for rank in ranks)
    job, late = Job(RANKS, facts, None, on_gpu=False), by_phases(facts)
    assert late is not None
    return JobVerdict(job, late, job_finding(job, late, run.verdict.finding))


def met_ranks(snapshot: Snapshot, count: int = RANKS) -> Snapshot:
    """The same by their collectives: of many ranks, each with a little of its own."""
    run = eight_ranks(snapshot)
    ranks = tuple(a_rank(i, snapshot) for i in range(count))
    facts = tuple(facts_of(rank) for rank in ranks)
    step_ns = round(STEP_MS * 1e6)
    steps = tuple(
        StepExchange(
            number=number,
            wall_ns=step_ns,
            collectives=12,
            bytes=400 << 20,
            transfer_ns=step_ns // 40,
            waiting_ns=tuple(
                0 if rank == LATE else step_ns * (540 + (7 * rank + number) % 13) // 1_000
                for rank in range(count)
            ),
            late_ns=tuple(step_ns * 54 // 100 if rank == LATE else 0 for rank in range(count)),
        )
        for number in range(48)
    )
    exchange = ExchangeFacts(tuple(range(count)), steps)
    job = Job(count, facts, exchange, on_gpu=True)
    late = late_rank(job)
    found = JobVerdict(job, late, job_finding(job, late, run.verdict.finding))
    return replace(run, ranks=ranks, world_size=count, job=found)


def facts_of(rank: Rank) -> RankFacts:
    """What is known of one rank by its marks."""
    assert rank.step_ms is not None
    shares: dict[RankPhase, float] = {
        "data": rank.data_share or 0.0,
        "forward": rank.forward_share or 0.0,
        "backward": rank.backward_share or 0.0,
        "optimizer": rank.optimizer_share or 0.0,
    }
    shares["other"] = 1.0 - sum(shares.values())
    phases_ms = {phase: share * rank.step_ms for phase, share in shares.items()}
    return RankFacts(rank.rank, rank.pid, rank.is_target, rank.step_ms, phases_ms)


def ranks_in_trouble(snapshot: Snapshot) -> Snapshot:
    """Of sixteen on two hosts: one here was killed, one hangs in a call, the others wait."""
    run = eight_ranks(snapshot)
    now_ns = snapshot.t_ns
    ranks = [
        replace(rank, open_phase="backward", open_since_ns=now_ns - 41 * S) for rank in run.ranks
    ]
    ranks[5] = replace(ranks[5], state="ended", last_seen_ns=now_ns - 44 * S)
    ranks[6] = replace(ranks[6], state="silent", last_seen_ns=now_ns - 12 * S)
    return replace(run, ranks=tuple(ranks), world_size=16)


def a_rank(rank: int, snapshot: Snapshot) -> Rank:
    """One of them; the target is the late one."""
    assert snapshot.steps is not None
    late = rank == LATE
    shares = (0.57, 0.14, 0.23) if late else (0.02, 0.14, 0.78)
    return Rank(
        rank=rank,
        pid=48213 + 100 * (rank - LATE),
        is_target=late,
        state="live",
        steps=snapshot.steps.total,
        step_ms=STEP_MS,
        data_share=shares[0],
        forward_share=shares[1],
        backward_share=shares[2],
        optimizer_share=0.04,
        open_phase="backward",
        open_since_ns=snapshot.t_ns - S // 5,
        last_seen_ns=snapshot.t_ns - S // 20,
        device=rank,
        memory_bytes=int((61.0 + 0.2 * rank) * GIB),
        memory_total_bytes=int(139.8 * GIB),
        active=active(rank, snapshot.t_ns, busy if late else _reducing),
    )


def _reducing(t_ns: int) -> float:
    """NVML calls a GPU busy in which a collective waits."""
    return max(busy(t_ns), 96.0)


@lru_cache(maxsize=256)
def active(rank: int, now_ns: int, of: Callable[[int], float]) -> Series:
    """How busy NVML calls its device: the mean of five readings, once a second."""
    growing = Growing(f"rank {rank}", "GPU busy", "%", "nvml", None, S)
    for second in range(-300, 1):
        at_ns = (now_ns // S + second) * S
        growing.add(at_ns, sum(of(at_ns - S + i * S // 5) for i in range(5)) / 5)
    return growing.series()
