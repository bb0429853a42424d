"""Another rank of the job is late, and this one waits for it; or ranks take turns at that."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..findings import Evidence, Finding, Forecast, Kind, Verdict
from ..forecast.gain import Gain
from ..format import ms, percent
from ..job.facts import Job
from ..job.late import LateBy, LateRank, late_rank, takes_turns
from ..job.lateness import rhythm_words, since_words
from ..scoring import cause, speedup_of
from ..thresholds.hysteresis import ENTER_LOW, ENTER_SHARE, LEAVE_SHARE
from ..window import StepWindow
from .contention import of_the_job

DOES: Final[dict[LateBy, str]] = {
    "data": "waits for its loader",
    "checkpoint": "saves checkpoints",
    "evaluation": "evaluates",
    "other": "is in Python between the phases",
    "compute": "computes longer",
    "shared": "computes on a GPU that others use too",
    "launch": "issues its work late",
}
_IN: Final[dict[LateBy, str]] = {
    "data": "waiting for data",
    "checkpoint": "saving",
    "evaluation": "in evaluation",
    "other": "between the phases",
    "compute": "in forward, backward and optimizer",
    "shared": "in forward, backward and optimizer",
    "launch": "in forward, backward and optimizer",
}
_ADVICE: Final[dict[LateBy, tuple[str, ...]]] = {
    "data": ("give every rank the same loader: workers, cores and storage of this one differ",),
    "checkpoint": (
        "save without stopping the others: torch.distributed.checkpoint.async_save, or all ranks "
        "save their own part",
    ),
    "evaluation": ("evaluate on all ranks at once, each a part of the data",),
    "other": (
        "logging, metrics and files of one rank hold all of them: do it less often, or on another "
        "thread",
    ),
    "compute": (
        "give every rank as much work: samples bucketed by length, or a sampler that balances "
        "tokens",
        "its GPU may be slower: compare clocks, throttling and other processes on it",
    ),
    "shared": (
        "give it a GPU of its own: see who is on it with nvidia-smi",
        "or leave that GPU out: the others are worth more without it",
    ),
    "launch": (
        "its host is slower: compare cores, CPU affinity and other processes beside it",
        "fewer, larger kernels: torch.compile(model) on all ranks",
    ),
}


def straggler(window: StepWindow) -> Finding | None:
    """What one rank comes later than all others to the collectives is lost on each of them. Says
    nothing on the late rank itself, whose own causes are the verdict."""
    late = late_rank(window.job) if window.job is not None else None
    if late is None or window.job is None or late.rank.is_target:
        return None
    return late_finding(window.job, late)


def late_finding(job: Job, late: LateRank) -> Finding:
    """The job's verdict: which rank, why, and what the others lose."""
    rank, late_ranks = late.rank, len(late.node[1]) if late.node is not None else 1
    waiting = job.others + 1 - late_ranks
    others = "the other waits" if waiting == 1 else f"the other {waiting} wait"
    does = f"{DOES[late.by]}{rhythm_words(late.lateness)}"
    headline = f"{who(late)} {does}: {others} for it {percent(late.share.mean)} of each step"
    if since := since_words(late.lateness):
        headline += f", {since}"
    own, theirs = ms(late.own_ms * 1e6), ms(late.others_ms * 1e6)
    text = f"rank {rank.rank} is {_IN[late.by]} {own} per step, the others {theirs}"
    evidence = [Evidence(text, "hook", late.own_ms - late.others_ms, "ms")]
    if late.behind_ms is not None:
        text = f"its host is {ms(late.behind_ms * 1e6)} behind the others' in each step, and they "
        text += "wait for their GPUs meanwhile"
        evidence = [Evidence(text, "collectives", late.behind_ms, "ms")]
    if late.from_collectives and late.of_steps is not None:
        lost_ms = late.share.mean * rank.step_ms
        text = f"all collectives wait for it {ms(lost_ms * 1e6)} of {ms(rank.step_ms * 1e6)} per "
        text += f"step; it is the last in {percent(late.of_steps)} of steps"
        if late.lateness is not None and late.lateness.since_step is None:
            text += f", from the first that is known (step {late.lateness.first_step:,})"
        if late.at_least:
            text += ", less what others on its GPU explain: more may be hidden behind others"
        if late.node is not None:
            text = f"its ranks ({_numbers(late.node[1])}) come late together: {text}"
        evidence.insert(0, Evidence(text, "collectives", lost_ms, "ms"))
    elif rank.gpu_busy is not None:
        text = f"its GPU is busy {rank.gpu_busy:.0f}% of the time, all others spin in collectives"
        evidence.append(Evidence(text, "nvml", rank.gpu_busy, "%"))
    if late.by == "shared" and rank.sharers:
        many = "process is" if rank.sharers == 1 else "processes are"
        text = f"{rank.sharers} other {many} on its GPU, and none on the others'"
        evidence.append(Evidence(text, "nvml", rank.sharers))
    attach = f"see why on rank {rank.rank}: gpuwatch attach {rank.address}"
    advice = _ADVICE[late.by]
    speedup = speedup_of(late.share.mean)
    found = cause(
        "straggler",
        late.by,
        late.share,
        headline,
        tuple(evidence),
        (*advice, attach) if rank.is_target else (attach, *advice),
        gain=Gain(speedup, "bound" if late.at_most else "estimate"),
    )
    return replace(found, forecast=Forecast(speedup, speedup, None)) if late.at_least else found


def who(late: LateRank) -> str:
    """ "rank 3", "rank 3 (node7)", "node node7" where all of its ranks are late."""
    if late.node is not None:
        return f"node {late.node[0]}" if late.node[0] else "this node"
    where = f" ({late.rank.host})" if late.rank.host else ""
    return f"rank {late.rank.rank}{where}"


def _numbers(ranks: tuple[int, ...]) -> str:
    """ "4 to 7", "1, 5, 9"."""
    if len(ranks) > 2 and ranks == tuple(range(ranks[0], ranks[-1] + 1)):
        return f"{ranks[0]} to {ranks[-1]}"
    return ", ".join(map(str, ranks[:4])) + (" …" if len(ranks) > 4 else "")


def job_finding(
    job: Job,
    late: LateRank | None,
    own: Finding,
    others: Sequence[Finding] = (),
    before: Finding | None = None,
) -> Finding:
    """One for all ranks: that one is late, where that would be a verdict on the others, even if the
    target is it, or that others hold their GPUs, if that costs more; else the target's own, or of
    the `others` beside that the one that is the verdict on all ranks. `before`: the job's last one,
    which leaves at a smaller share than it enters with, as the engine's causes do."""
    was = before.kind if before is not None else None
    crowded = of_the_job(job)
    if crowded is not None and crowded.share is not None and own.kind not in FIRST:
        least = LEAVE_SHARE if was == "contention" else ENTER_SHARE
        if crowded.share > least and (late is None or late.share.mean <= crowded.share):
            return crowded
        if late is not None and _holds(late, was):
            return late_finding(job, late)
    if late is not None and late.rank.is_target and _holds(late, was):
        # A transfer takes as long on all ranks: where it is more, it is the others' verdict too.
        is_less = own.kind == "communication" and late.share.mean < (own.share or 0.0)
        return own if is_less else late_finding(job, late)
    return _of_both(job, own, others)


def _of_both(job: Job, own: Finding, others: Sequence[Finding]) -> Finding:
    """Of launches and communication, where the target has both: the one that is larger on all ranks
    of the job. What a GPU waits for its own host or for another rank's differs by rank; a transfer
    takes as long on all, and in what their GPUs all idle none of them is in it."""
    both = {one.kind: one for one in (own, *others) if one.kind in BY_HOST_OR_LINKS}
    if job.idle is None or own.kind not in both or len(both) < len(BY_HOST_OR_LINKS):
        return own
    return both["launch" if job.idle > (both["communication"].share or 0.0) else "communication"]


BY_HOST_OR_LINKS: Final[frozenset[Kind]] = frozenset({"launch", "communication"})


def _holds(late: LateRank, was: Kind | None) -> bool:
    if was == "straggler":
        return late.share.mean >= LEAVE_SHARE
    return late.share.mean > ENTER_SHARE and late.share.low > ENTER_LOW


FIRST: Final[frozenset[Kind]] = frozenset({"warming-up", "incomplete", "stalled"})
"""Of the target's, before shares are judged."""


def beside_the_job(verdict: Verdict, of_job: Finding) -> Verdict:
    """The late rank's own verdict, with what it costs all others behind it."""
    seen = (verdict.finding, *verdict.contributors)
    if any(one.kind == of_job.kind for one in seen):
        return verdict
    return replace(verdict, contributors=(*verdict.contributors, of_job))


def imbalance(window: StepWindow) -> Finding | None:
    """Ranks wait for each other in turns: what even work on all of them would save."""
    job = window.job
    if job is None or job.exchange is None or (share := takes_turns(job)) is None:
        return None
    counts = job.exchange.times_late()
    last = ", ".join(
        f"rank {rank} in {percent(times / len(job.exchange.steps))}"
        for rank, times in sorted(
            zip(job.exchange.ranks, counts, strict=True), key=lambda one: -one[1]
        )[:3]
    )
    found = cause(
        "imbalance",
        None,
        share,
        f"ranks take turns at being late: each waits {percent(share.mean)} of its time",
        (Evidence(f"the last to come: {last} of steps", "collectives", share.mean),),
        (
            "samples of uneven length: bucket them by length, so that all ranks get alike batches",
            "balance tokens and not samples: pack sequences, or a sampler by length",
        ),
        gain=Gain(speedup_of(share.mean), "bound"),
    )
    return replace(found, speedup_is="bound")
