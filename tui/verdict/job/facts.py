"""What is known of a job's ranks here, and which of them the others wait for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import median
from typing import Final, Literal

from ...messages import DdpTimes
from ..statistics import Share, at_most, share_of
from ..thresholds import ranks as limits
from ..thresholds.gpu import GPU_BUSY
from .exchange import Fabric, StepExchange, hosts_of
from .standing import Doing, Pending

RankPhase = Literal["data", "forward", "backward", "optimizer", "checkpoint", "evaluation", "other"]
LateBy = Literal["data", "checkpoint", "evaluation", "other", "compute", "shared", "launch"]
"""In what a late rank loses its time; `shared`: it computes on a GPU that others use too, `launch`:
its host issues late while its GPU idles."""


@dataclass(frozen=True, slots=True)
class RankFacts:
    """One rank by its marks, on its host's clock."""

    rank: int
    pid: int
    is_target: bool
    step_ms: float
    phases_ms: Mapping[RankPhase, float]
    """Of the mean step; they add up to it."""
    gpu_busy: float | None = None
    """Percent of the time, by NVML; None without a GPU."""
    sharers: int | None = None
    """Processes on its GPU that are no ranks of the job; None where that is not known."""
    host: str = ""
    """Where it is; "" for the target's own host."""


@dataclass(frozen=True, slots=True)
class ExchangeFacts:
    """The collectives of the last steps. Sequences are by rank, in the order of `ranks`."""

    ranks: tuple[int, ...]
    steps: tuple[StepExchange, ...]
    """Oldest first."""
    ddp: tuple[Mapping[int, DdpTimes], ...] = ()
    """What DistributedDataParallel measured in single iterations, by rank."""
    fabric: Fabric | None = None
    """Of the newest reading."""
    hosts: tuple[str, ...] = ()
    """Of each rank; () where all are on one."""

    @property
    def at_best(self) -> float | None:
        """Part of the transfer that is left where every collective is as fast as those of its name
        are at their best; None where that is not known."""
        found = self.fabric
        return found.at_best_ns / found.shortest_ns if found and found.shortest_ns else None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Each host once; () where all ranks are on one."""
        return hosts_of(self.hosts)

    def ranks_on(self, host: str) -> tuple[int, ...]:
        """Those of one host."""
        return tuple(rank for rank, one in zip(self.ranks, self.hosts, strict=False) if one == host)

    def node_late(self, host: str) -> list[int]:
        """By step, what the ranks of all other hosts waited for all ranks of this one, ns."""
        at = self.nodes.index(host)
        return [one.node_late_ns[at] if one.node_late_ns else 0 for one in self.steps]

    @property
    def wall_ns(self) -> int:
        """Of all these steps."""
        return sum(one.wall_ns for one in self.steps)

    @property
    def step_ns(self) -> float:
        """Mean length."""
        return self.wall_ns / max(1, len(self.steps))

    @property
    def on_device(self) -> bool:
        """The device's clock timed them, so that their transfer is known."""
        return any(one.transfer_ns is not None for one in self.steps)

    @property
    def transfer(self) -> Share | None:
        """Part of the time in which data moves; None where that is not known."""
        rows = [one for one in self.steps if one.transfer_ns is not None]
        if not rows:
            return None
        return share_of([one.transfer_ns or 0 for one in rows], [one.wall_ns for one in rows])

    @property
    def exposed(self) -> Share | None:
        """What DistributedDataParallel has measured: from the first all-reduce to the end of the
        last, less what the backward computed meanwhile; the least over the ranks, since the others'
        waits are not transfer. One iteration of a hundred is no mean: it is never more than all the
        transfer that the collectives of every step have at most."""
        shares = []
        for sample in self.ddp:
            times = [sample[rank] for rank in self.ranks if rank in sample]
            if len(times) == len(self.ranks) and all(one.comm_ns > 0 for one in times):
                least = min(max(0, one.comm_ns - one.overlap_ns) for one in times)
                shares.append(min(1.0, least / self.step_ns))
        if not shares:
            return None
        mean, transfer = median(shares), self.transfer
        found = Share(mean, min(shares), max(shares))
        if len(shares) < 2:
            found = Share(mean, mean / 2, min(1.0, 1.5 * mean))
        return found if transfer is None else at_most(found, transfer.high)

    def waiting(self, rank: int) -> Share:
        """Part of its time that this rank waits for later ones."""
        return self._share([one.waiting_ns[self.ranks.index(rank)] for one in self.steps])

    def late(self, rank: int) -> Share:
        """Part of the time that every other rank waits for this one, beyond the next latest."""
        return self._share([one.late_ns[self.ranks.index(rank)] for one in self.steps])

    def _share(self, parts_ns: list[int]) -> Share:
        return share_of(parts_ns, [one.wall_ns for one in self.steps])

    @property
    def waits(self) -> Share:
        """Part of its time that a rank waits, on average over the ranks: what even work saves."""
        ranks = len(self.ranks)
        return self._share([sum(one.waiting_ns) // ranks for one in self.steps])

    def lost_to(self, rank: int) -> float | None:
        """By DistributedDataParallel's own times: the part of the time that goes by on the other
        ranks between the end of their backward and the end of the exchange, beyond what it is on
        this one, which nobody keeps waiting; None where it has none. A rank that waits in its first
        buckets still computes the rest of its backward: that wait costs nothing."""
        parts: list[float] = []
        for sample in self.ddp:
            exposed = {
                one: max(0, times.comm_ns - times.overlap_ns) for one, times in sample.items()
            }
            others = [ns for one, ns in exposed.items() if one != rank]
            if rank in exposed and others:
                parts.append(max(0, min(others) - exposed[rank]) / self.step_ns)
        return min(1.0, median(parts)) if parts else None

    @property
    def in_step(self) -> bool:
        """All hosts issue their collectives within a step of each other: none is so far ahead that
        its own calls wait for a full queue, and its phases are its own work."""
        ahead = [max(one.ahead_ns) for one in self.steps if one.ahead_ns]
        return bool(ahead) and median(ahead) < self.step_ns

    def times_late(self) -> list[int]:
        """By rank: in how many steps it was the last by so much that it matters."""
        counts = [0] * len(self.ranks)
        for one in self.steps:
            most = max(one.late_ns)
            if most >= limits.LATE_STEP * one.wall_ns:
                counts[one.late_ns.index(most)] += 1
        return counts


@dataclass(frozen=True, slots=True)
class Job:
    """The target's job, as far as it runs on this host."""

    world_size: int
    ranks: tuple[RankFacts, ...]
    """Those that run and have made steps, by number."""
    exchange: ExchangeFacts | None
    on_gpu: bool
    pending: Pending | None = None
    """While nothing moves."""
    ended: tuple[int, ...] = ()
    """Ranks here whose process has ended, while others run."""
    reading: bool = False
    """Its collectives have been asked for, not long ago, and none are known yet."""
    doing: Mapping[int, Doing] = field(default_factory=dict)
    """By rank, of those that run."""

    def facts(self, rank: int) -> RankFacts | None:
        """Of one of them."""
        return next((one for one in self.ranks if one.rank == rank), None)

    @property
    def others(self) -> int:
        """Ranks that wait for a late one: of the whole job."""
        return max(self.world_size, len(self.ranks)) - 1


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
    node: tuple[str, tuple[int, ...]] | None = None
    """Where all ranks of one host are late: it, and they. `rank` is the target, where it is
    among them, or else the slowest."""


def late_rank(job: Job) -> LateRank | None:
    """By the collectives, where they are known; else by the phases on the hosts' clocks.

    Collectives are read now and then, marks all the time: a pause that fell between two readings
    is known by its rank's marks alone.
    """
    if job.exchange is None or not job.exchange.steps:
        return _by_marks(job)
    late, node = _by_collectives(job, job.exchange), _late_node(job, job.exchange)
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
    if late is None or not job.on_gpu:
        return late
    busy = {one.rank: one.gpu_busy for one in job.ranks}
    others = [percent for rank, percent in busy.items() if rank != late.rank.rank]
    own = busy[late.rank.rank]
    if own is None or own >= 100 * GPU_BUSY or late.by not in ("data", "checkpoint", "evaluation"):
        return None
    spin = all(percent is not None and percent >= 100 * GPU_BUSY for percent in others)
    return late if spin else None


def takes_turns(job: Job) -> Share | None:
    """Ranks wait for each other, and none of them is the late one: the part of the time that even
    work would save; None where one is, or they hardly wait, or too few steps show it."""
    exchange = job.exchange
    if exchange is None or late_rank(job) is not None:
        return None
    waits = exchange.waits
    if waits.mean < limits.LEAST_LATE or sum(exchange.times_late()) < limits.TURNS:
        return None
    return waits


def _late_node(job: Job, exchange: ExchangeFacts) -> LateRank | None:
    """All ranks of one host, where those of all others wait for every one of them."""
    nodes = exchange.nodes
    if len(nodes) < 2:
        return None
    walls = [one.wall_ns for one in exchange.steps]
    lost = {host: exchange.node_late(host) for host in nodes}
    shares = {host: share_of(lost[host], walls) for host in nodes}
    host = max(shares, key=lambda one: shares[one].mean)
    share, ranks = shares[host], exchange.ranks_on(host)
    known = [facts for rank in ranks if (facts := job.facts(rank)) is not None]
    whole = sum(one.mean for one in shares.values())
    if len(ranks) < 2 or not known or share.mean < max(limits.LEAST_LATE, limits.MOSTLY * whole):
        return None
    late = {
        one: sum(ns >= limits.LATE_STEP * wall for ns, wall in zip(lost[one], walls, strict=True))
        for one in nodes
    }
    if _chance(late[host], sum(late.values()), len(nodes)) > limits.BY_CHANCE:
        return None
    slowest = max(
        known, key=lambda one: (one.is_target, one.step_ms - one.phases_ms.get("backward", 0.0))
    )
    others = [one for one in job.ranks if one.rank not in ranks]
    by, own_ms, others_ms = _cause(slowest, others, share.mean * exchange.step_ns / 1e6)
    of_steps = late[host] / len(exchange.steps)
    bound, node = exchange.on_device, (host, ranks)
    return LateRank(slowest, by, share, of_steps, own_ms, others_ms, True, bound, node)


def _by_collectives(job: Job, exchange: ExchangeFacts) -> LateRank | None:
    shares = {rank: exchange.late(rank) for rank in exchange.ranks}
    worst = max(shares, key=lambda rank: shares[rank].mean)
    facts, share = job.facts(worst), shares[worst]
    whole = sum(one.mean for one in shares.values())
    if facts is None or share.mean < limits.LEAST_LATE or share.mean < limits.MOSTLY * whole:
        return None
    lost = exchange.lost_to(worst) if exchange.on_device else None
    told = lost is not None and lost >= limits.LEAST_LATE
    if lost is not None and told and lost < share.mean:
        share = Share(lost, lost * share.low / share.mean, share.mean)
    lost_ms = share.mean * exchange.step_ns / 1e6
    by, own_ms, others_ms = _cause(facts, [one for one in job.ranks if one != facts], lost_ms)
    if by == "launch" and exchange.in_step:
        # The others' hosts are hardly faster: without this one's delay they wait for their own.
        share = at_most(share, max(0.0, own_ms - others_ms) / facts.step_ms)
        if share.mean < limits.LEAST_LATE:
            return None
    counts = exchange.times_late()
    times, all_times = counts[exchange.ranks.index(worst)], sum(counts)
    paused = by in ("checkpoint", "evaluation") and all_times >= limits.PAUSES
    if not paused and _chance(times, all_times, len(exchange.ranks)) > limits.BY_CHANCE:
        return None
    of_steps = times / len(exchange.steps)
    bound = exchange.on_device and not told
    return LateRank(facts, by, share, of_steps, own_ms, others_ms, True, at_most=bound)


def _chance(times: int, all_times: int, ranks: int) -> float:
    """Of being the last at least so often, were every rank as likely: a binomial tail."""
    if all_times == 0:
        return 1.0
    all_times, times = min(all_times, 200), round(times * min(1.0, 200 / all_times))
    one = 1 / ranks
    return sum(
        comb(all_times, k) * one**k * (1 - one) ** (all_times - k)
        for k in range(times, all_times + 1)
    )


def _cause(
    rank: RankFacts, others: Sequence[RankFacts], lost_ms: float
) -> tuple[LateBy, float, float]:
    """What the late rank does longer than the others, and how long both take, ms a step. One whose
    GPU is always busy computes: its host waits for that wherever it reads a result."""
    beyond: dict[RankPhase, tuple[float, float]] = {}
    for phase, own_ms in rank.phases_ms.items():
        theirs = median(one.phases_ms.get(phase, 0.0) for one in others) if others else 0.0
        beyond[phase] = own_ms, theirs

    def explains(phase: RankPhase) -> bool:
        own_ms, theirs = beyond.get(phase, (0.0, 0.0))
        return own_ms - theirs >= limits.EXPLAINS * lost_ms

    if explains("checkpoint"):
        return ("checkpoint", *beyond["checkpoint"])
    if explains("evaluation"):
        return ("evaluation", *beyond["evaluation"])
    busy = rank.gpu_busy
    if busy is None or busy < 100 * GPU_BUSY:
        if explains("data"):
            return ("data", *beyond["data"])
        if explains("other"):
            return ("other", *beyond["other"])
    work: tuple[RankPhase, ...] = ("forward", "backward", "optimizer")
    own_ms = sum(beyond.get(phase, (0.0, 0.0))[0] for phase in work)
    theirs = sum(beyond.get(phase, (0.0, 0.0))[1] for phase in work)
    if busy is not None and busy < 100 * GPU_BUSY:
        return ("launch", own_ms, theirs)
    alone = all(not one.sharers for one in others)
    return ("shared" if rank.sharers and alone else "compute", own_ms, theirs)


OWN_PHASES: Final[tuple[RankPhase, ...]] = (
    "data", "checkpoint", "evaluation", "forward", "optimizer", "other",
)  # fmt: skip
"""In which a rank loses time of its own, the surest first. In the backward they wait for each
other."""


def by_phases(ranks: Sequence[RankFacts]) -> LateRank | None:
    """The rank that spends most beyond the others in a phase before they meet in the backward; None
    where none stands out, or fewer than two are known."""
    if len(ranks) < 2:
        return None
    lost: list[tuple[RankFacts, RankPhase, float, float]] = [
        (rank, phase, rank.phases_ms.get(phase, 0.0), _median(ranks, rank, phase))
        for rank in ranks
        for phase in OWN_PHASES
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


def _median(ranks: Sequence[RankFacts], without: RankFacts, phase: RankPhase) -> float:
    return median(one.phases_ms.get(phase, 0.0) for one in ranks if one is not without)
