"""Which rank of a job the others wait for, or that they take turns at it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, Literal

from ..statistics import Share, at_most, beyond, binomial_tail, share_of
from ..thresholds import ranks as limits
from ..thresholds.gpu import GPU_BUSY
from .crowding import OFF_GPU, held, is_crowded
from .facts import ExchangeFacts, Job, RankFacts, RankPhase
from .lateness import Late, Lateness, usual

LateBy = Literal["data", "checkpoint", "evaluation", "other", "compute", "shared", "launch"]
"""In what a late rank loses its time; `shared`: it computes on a GPU that others use too, `launch`:
its host issues late while its GPU idles."""


@dataclass(frozen=True, slots=True)
class LateRank:
    """The rank that all others wait for."""

    rank: RankFacts
    by: LateBy
    share: Share
    """Of the time: what would go if it came no later than the next latest."""
    of_steps: float | None
    """Part of the steps in which it is the last by so much that it matters; None: not known."""
    own_ms: float
    """A step's, of what it loses its time in: its own and the median of the others'."""
    others_ms: float
    from_collectives: bool
    """By its collectives; else by the phases on the hosts' clocks."""
    at_most: bool = False
    """No more than `share` is lost: what the others compute while they wait is not known."""
    at_least: bool = False
    """More than `share` may be its own: what others on its GPU may explain is left out."""
    node: tuple[str, tuple[int, ...]] | None = None
    """Where all ranks of one host are late: it, and they. `rank` is the target, where it is
    among them, or else the slowest."""
    lateness: Lateness | None = None
    """Since when and how often; None where that is not known."""
    behind_ms: float | None = None
    """By how much its host issues a step's last collective later than the next latest, where that
    one's phases hold waits for its device; None: `own_ms` and `others_ms` compare their work."""


WITHOUT_GPU: Final[frozenset[LateBy]] = frozenset({"data", "checkpoint", "evaluation", "other"})
"""What a host is late by while its GPU waits for it."""


def late_rank(job: Job) -> LateRank | None:
    """By the collectives, where they are known; else by the phases on the hosts' clocks.

    Collectives are read now and then, marks all the time: a pause that fell between two readings
    is known by its rank's marks alone.
    """
    if job.exchange is None or not job.exchange.steps:
        return _by_marks(job)
    exchange = job.exchange
    late = _named(job, exchange, _latest_rank(job, exchange))
    node = _named(job, exchange, _latest_node(job, exchange))
    if node is not None and (late is None or late.share.mean <= node.share.mean):
        return node
    if late is not None:
        return late
    pauses = _by_marks(job)
    return pauses if pauses is not None and pauses.by in ("checkpoint", "evaluation") else None


def _by_marks(job: Job) -> LateRank | None:
    """A host that runs ahead of its GPU waits wherever it happens to read a result, so with GPUs
    only phases in which nothing is read count, and only on a rank whose GPU idles while all others
    spin."""
    late = by_phases(job.ranks)
    if late is None:
        return None
    late = replace(late, lateness=job.lateness.get(late.rank.rank))
    if not job.on_gpu:
        return late
    busy = {one.rank: one.busy for one in job.ranks}
    others = [percent for rank, percent in busy.items() if rank != late.rank.rank]
    own = busy[late.rank.rank]
    if own is None or own >= 100 * GPU_BUSY or late.by not in ("data", "checkpoint", "evaluation"):
        return None
    spins = [percent for percent in others if percent is not None and percent >= 100 * GPU_BUSY]
    if len(spins) < len(others):
        return None
    # What their GPUs only spin for: a pause is more than the call that saves, such as the copies
    # before it, and other phases of hosts that wait tell nothing of that.
    more = (min(spins) - own) / 100
    if late.share.mean < limits.EXPLAINS * more or more <= late.share.mean:
        return late
    return replace(late, share=Share(more, late.share.low, max(more, late.share.high)))


def takes_turns(job: Job) -> Share | None:
    """Ranks wait for each other, and none of them is the late one: the part of the time that even
    work would save; None where one is, be it behind what the others compute, or they hardly wait,
    or too few steps show it."""
    exchange = job.exchange
    if exchange is None or not exchange.steps or late_rank(job) is not None:
        return None
    latest = _latest_rank(job, exchange)
    if latest is not None and not latest.may_be_chance:
        return None
    waits = exchange.waits
    waits = beyond(waits, max((held(one) for one in job.ranks), default=0.0))
    if waits.mean < limits.LEAST_LATE or sum(exchange.times_late()) < limits.TURNS:
        return None
    return waits


def _own_part(share: Share, late: RankFacts, by: LateBy, more_ms: float) -> Share:
    """Of what a rank is late, its own part: beyond what others on its GPU explain, or what it does
    longer without its GPU, whichever is more. Where only its GPU is shared, that is the cause."""
    part = held(late)
    if by == "shared" or not part:
        return share
    rest = beyond(share, part)
    if by in OFF_GPU and late.step_ms and more_ms / late.step_ms > rest.mean:
        return at_most(share, more_ms / late.step_ms)
    return rest


@dataclass(frozen=True, slots=True)
class _Latest:
    """Whom the collectives show to come last: a rank, or all ranks of a host."""

    facts: RankFacts
    others: Sequence[RankFacts]
    share: Share
    times: int
    """Steps in which it was the last by so much that it matters…"""
    all_times: int
    """…and those in which any was."""
    chance: float
    """Of its being the last so often, were every one as likely."""
    node: tuple[str, tuple[int, ...]] | None = None
    is_measured: bool = False
    """What the others compute meanwhile is known."""

    @property
    def may_be_chance(self) -> bool:
        """Ranks that are late at random make one of them the last so often."""
        return self.chance > limits.BY_CHANCE


def _latest_node(job: Job, exchange: ExchangeFacts) -> _Latest | None:
    """All ranks of one host, where those of all others wait for every one of them."""
    nodes = exchange.nodes
    if len(nodes) < 2:
        return None
    walls = exchange.walls_ns
    lost = {host: exchange.node_late(host) for host in nodes}
    shares = {host: share_of(lost[host], walls) for host in nodes}
    host = max(shares, key=lambda one: shares[one].mean)
    ranks = exchange.ranks_on(host)
    known = [facts for rank in ranks if (facts := job.facts(rank)) is not None]
    if len(ranks) < 2 or not known or not _is_most(shares[host], shares.values()):
        return None
    late = [
        (one, ns)
        for one in nodes
        for ns, wall in zip(lost[one], walls, strict=True)
        if ns >= limits.LATE_STEP * wall
    ]
    slowest = max(
        known, key=lambda one: (one.is_target, one.step_ms - one.phases_ms.get("backward", 0.0))
    )
    others = [one for one in job.ranks if one.rank not in ranks]
    times, chance = sum(one == host for one, _ in late), _chance(host, late, len(nodes))
    return _Latest(slowest, others, shares[host], times, len(late), chance, (host, ranks))


def _latest_rank(job: Job, exchange: ExchangeFacts) -> _Latest | None:
    shares = {rank: exchange.late(rank) for rank in exchange.ranks}
    worst = max(shares, key=lambda rank: shares[rank].mean)
    facts, share = job.facts(worst), shares[worst]
    if facts is None or not _is_most(share, shares.values()):
        return None
    others = [one for one in job.ranks if one != facts]
    own_left = 1.0 if any(map(held, others)) else 1 - held(facts)
    lost = exchange.lost_to(worst, own_left) if exchange.on_device else None
    is_measured = lost is not None and (lost >= limits.LEAST_LATE or exchange.sampled(worst))
    if lost is not None and is_measured and lost < share.mean:
        share = Share(lost, lost * share.low / share.mean, share.mean)
    late = exchange.last_ones()
    times, chance = sum(one == worst for one, _ in late), _chance(worst, late, len(exchange.ranks))
    return _Latest(facts, others, share, times, len(late), chance, None, is_measured)


def _is_most(share: Share, of: Iterable[Share]) -> bool:
    """It matters, and is most of what is waited for anybody."""
    return share.mean >= max(limits.LEAST_LATE, limits.MOSTLY * sum(one.mean for one in of))


def _named(job: Job, exchange: ExchangeFacts, latest: _Latest | None) -> LateRank | None:
    """Why it is late, and what of that is its own; None where that is nothing, or may be chance."""
    if latest is None:
        return None
    facts, share = latest.facts, latest.share
    by, own_ms, others_ms = _cause(facts, latest.others, share.mean * exchange.step_ns / 1e6)
    lead = exchange.lead(facts.rank) if by == "launch" and latest.node is None else None
    if lead is not None:
        share = at_most(share, lead.mean)
    elif by == "launch" and exchange.in_step:
        # The others' hosts are hardly faster: without this one's delay they wait for their own.
        share = at_most(share, max(0.0, own_ms - others_ms) / facts.step_ms)
    if exchange.on_device and not latest.is_measured:
        share = at_most(share, _most(job, exchange, latest, by, own_ms - others_ms))
    whole_share, share = share, _own_part(share, facts, by, own_ms - others_ms)
    if share.mean < limits.LEAST_LATE:
        return None
    paused = by in ("checkpoint", "evaluation") and latest.all_times >= limits.PAUSES
    if not paused and latest.may_be_chance:
        return None
    at_least = share.mean < whole_share.mean
    return LateRank(
        rank=facts,
        by=by,
        share=share,
        of_steps=latest.times / len(exchange.steps),
        own_ms=own_ms,
        others_ms=others_ms,
        from_collectives=True,
        at_most=exchange.on_device and not latest.is_measured and not at_least,
        at_least=at_least,
        node=latest.node,
        lateness=exchange.lateness.get(latest.node[0] if latest.node else facts.rank),
        behind_ms=None if lead is None else lead.mean * exchange.step_ns / 1e6,
    )


def _most(job: Job, exchange: ExchangeFacts, latest: _Latest, by: LateBy, more_ms: float) -> float:
    """Part of the time that can go at most, were it never late, by what stays: the transfer; what
    the others compute, by DistributedDataParallel's own times; of a rank that is late without its
    GPU, what that does. And the others wait no longer than their GPUs are emptier than the late
    one's, which has the same transfer: a wait behind which a GPU computes costs nothing."""
    facts, others = latest.facts, latest.others
    most = 1.0
    if exchange.transfer is not None:
        most -= exchange.transfer.mean
    most = min(most, 1 - exchange.computed([one.rank for one in others]))
    crowded = any(map(held, [facts, *others]))
    if by in WITHOUT_GPU and facts.busy is not None and not crowded:
        # NVML counts short gaps as busy: what its host does longer goes in any case.
        most = min(most, max(1 - facts.busy / 100, more_ms / facts.step_ms))
    empty = [one.empty for one in (facts, *others)]
    known = [part for part in empty if part is not None]
    if len(known) == len(empty) > 1 and not crowded:
        most = min(most, *(max(0.0, part - known[0]) for part in known[1:]))
    return most


def _chance(who: Late, late: Sequence[tuple[Late, int]], among: int) -> float:
    """Of its being the last at least so often among so many, were every one as likely: in all late
    steps, or in those that cost. After a change steps of before may be many that cost little (2,000
    steps of 1 ms, in which two ranks take turns, beside 40 of 40 ms)."""
    costly_ns = limits.AS_LATE * usual([ns for _, ns in late])
    costly = [one for one, ns in late if ns >= costly_ns]
    everywhere = _tail([one for one, _ in late].count(who), len(late), among)
    return min(everywhere, limits.ASKED_AGAIN * _tail(costly.count(who), len(costly), among))


def _tail(times: int, all_times: int, among: int) -> float:
    """Of so many times at least, were every one as likely."""
    if all_times == 0:
        return 1.0
    all_times, times = min(all_times, 200), round(times * min(1.0, 200 / all_times))
    return binomial_tail(times, all_times, 1 / among)


def _cause(
    rank: RankFacts, others: Sequence[RankFacts], lost_ms: float
) -> tuple[LateBy, float, float]:
    """What the late rank does longer than the others, and how long both take, ms a step. One whose
    GPU is always busy computes: its host waits for that wherever it reads a result. So does one
    whose GPU, by its own counters, idles for less than half of what is lost."""
    longer: dict[RankPhase, tuple[float, float]] = {}
    for phase, own_ms in rank.phases_ms.items():
        theirs = median(one.phases_ms.get(phase, 0.0) for one in others) if others else 0.0
        longer[phase] = own_ms, theirs

    def explains(phase: RankPhase) -> bool:
        own_ms, theirs = longer.get(phase, (0.0, 0.0))
        return own_ms - theirs >= limits.EXPLAINS * lost_ms

    if explains("checkpoint"):
        return ("checkpoint", *longer["checkpoint"])
    if explains("evaluation"):
        return ("evaluation", *longer["evaluation"])
    busy = rank.busy
    idles = busy is None or busy < 100 * GPU_BUSY
    # Where others keep its GPU busy, that says nothing of the rank.
    if (idles or held(rank)) and explains("data"):
        return ("data", *longer["data"])
    if idles and explains("other"):
        return ("other", *longer["other"])
    work: tuple[RankPhase, ...] = ("forward", "backward", "optimizer")
    own_ms = sum(longer.get(phase, (0.0, 0.0))[0] for phase in work)
    theirs = sum(longer.get(phase, (0.0, 0.0))[1] for phase in work)
    idle_ms = rank.step_ms * (1 - (rank.active or 0.0) / 100)
    if busy is not None and idles and idle_ms >= limits.EXPLAINS * lost_ms:
        return ("launch", own_ms, theirs)
    alone = not any(is_crowded(one) for one in others)
    return ("shared" if is_crowded(rank) and alone else "compute", own_ms, theirs)


OWN_PHASES: Final[tuple[RankPhase, ...]] = (
    "data", "checkpoint", "evaluation", "forward", "optimizer", "other",
)  # fmt: skip
"""In which a rank loses time of its own, the surest first. In the backward they wait for each
other."""
_MAY_WAIT: Final[tuple[RankPhase, ...]] = ("optimizer", "other")
"""Behind the backward, where they do so if gradients are averaged by hand."""


def by_phases(ranks: Sequence[RankFacts]) -> LateRank | None:
    """The rank that spends most beyond the others in a phase of its own; None where none stands
    out, or fewer than two are known."""
    if len(ranks) < 2:
        return None
    lost: list[tuple[RankFacts, RankPhase, float, float]] = [
        (rank, phase, rank.phases_ms.get(phase, 0.0), _median(ranks, rank, phase))
        for rank in ranks
        for phase in OWN_PHASES
        if phase not in _MAY_WAIT or not _computes_less(rank, ranks)
    ]
    most = max(own - others for _, _, own, others in lost)
    by_sureness = sorted(lost, key=lambda one: (OWN_PHASES.index(one[1]), one[3] - one[2]))
    rank, phase, own_ms, others_ms = next(
        one for one in by_sureness if one[2] - one[3] >= limits.ALIKE * most
    )
    share = (own_ms - others_ms) / rank.step_ms if rank.step_ms else 0.0
    if share < limits.LATE_BY:
        return None
    by: LateBy = "compute"
    if phase in ("data", "checkpoint", "evaluation", "other"):
        by = phase
    share = min(1.0, share)
    spread = min(share, limits.LEAST_LATE)
    interval = Share(share, share - spread, min(1.0, share + spread))
    return LateRank(rank, by, interval, None, own_ms, others_ms, from_collectives=False)


def _computes_less(rank: RankFacts, ranks: Sequence[RankFacts]) -> bool:
    """Its forward is shorter than the others': behind the backward it may wait for them."""
    own_ms = rank.phases_ms.get("forward", 0.0)
    return own_ms < (1 - limits.COMPUTES_LESS) * _median(ranks, rank, "forward")


def _median(ranks: Sequence[RankFacts], without: RankFacts, phase: RankPhase) -> float:
    return median(one.phases_ms.get(phase, 0.0) for one in ranks if one is not without)
