"""Processes of others that compute on the ranks' GPUs: how much of a job that alone explains.

A GPU works for one process at a time, in slices. While others have it for x of the time, a rank's
kernels take 1 / (1 - x) as long, and so do its collectives, whose every step needs all ranks at
once. Neither makes that rank the cause, nor the links.
"""

from math import prod

from ..statistics import Share, without_rows
from ..thresholds.hysteresis import CONTRIBUTOR
from .facts import Job, RankFacts, RankPhase

OFF_GPU: tuple[RankPhase, ...] = ("data", "checkpoint", "evaluation")
"""Where the host is busy or waits without its GPU: what others do there costs nothing."""


def taken(rank: RankFacts) -> float:
    """Part of its GPU's time that others use, 0 to 1; 0 where NVML does not say, or next to
    nothing."""
    part = min(1.0, (rank.others_sm or 0.0) / 100)
    return part if part >= CONTRIBUTOR else 0.0


def is_crowded(rank: RankFacts) -> bool:
    """Others are on its GPU, and are not known to be idle."""
    return bool(rank.sharers) and (rank.others_sm is None or taken(rank) > 0)


def held(rank: RankFacts) -> float:
    """Part of a step by which others may make this rank late, 0 to 1: what they use, or equal
    turns with each of them, whichever is more. NVML counts a process while its kernels run, as a
    mean of 5 s: one that used 10 to 37 % made a rank late 72 % of each step on an H200."""
    part = taken(rank)
    if not part:
        return 0.0
    sharers = rank.sharers or 1
    return max(part, sharers / (sharers + 1))


def undisturbed(job: Job) -> float:
    """Part of what collectives take that is left where nobody else uses the GPUs.

    They go on while all ranks have their GPU at once: chances multiply, as others' slices know
    nothing of each other. On two H200s, of which others used 68 and 50 %, that is 0.16 of the
    8.2 ms a step that the all-reduces of a job took, 1.3 ms: 1.8 ms without them.
    """
    return prod(1 - taken(one) for one in job.ranks)


def lost_to_others(job: Job) -> Share | None:
    """Part of the job's time that others' work on its GPUs costs at most; None where they use fewer
    than two ranks' (that one is late then), or NVML does not say.

    All ranks leave a step together. Without the others it would be as long as that of the rank
    whose own time then is the longest: of what it does not wait, its host's part as it is, and
    1 - x of the rest.
    """
    if sum(taken(one) > 0 for one in job.ranks) < 2:
        return None
    left = max(_left(job, one) for one in job.ranks)
    return without_rows(max(0.0, 1 - left))


def _left(job: Job, rank: RankFacts) -> float:
    exchange, waits = job.exchange, 0.0
    if exchange is not None and rank.rank in exchange.ranks:
        waits = exchange.waiting(rank.rank).mean
    own = max(0.0, 1 - waits)
    off_ms = sum(rank.phases_ms.get(phase, 0.0) for phase in OFF_GPU)
    off = min(own, off_ms / rank.step_ms if rank.step_ms else 0.0)
    return off + (own - off) * (1 - taken(rank))
