"""What is known of a job's ranks here, and of their collectives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean, median, pvariance
from typing import Literal

from ...messages import DdpTimes
from ..statistics import Share, at_most, share_of
from ..thresholds import ranks as limits
from .exchange import Fabric, StepExchange, hosts_of
from .lateness import Late, Lateness
from .standing import Doing, Pending, StandingRank, address_of

RankPhase = Literal["data", "forward", "backward", "optimizer", "checkpoint", "evaluation", "other"]


def emptiness(active: float, sm: float) -> float:
    """Of the time, 0 to 1: percents in which a GPU does anything, and of its multiprocessors at
    work. NCCL's kernels alone keep `limits.NCCL_SM` of them active."""
    return min(1.0, max(0.0, active - sm) / 100 / (1 - limits.NCCL_SM))


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
    others_sm: float | None = None
    """Percent of its GPU's time that those processes use together, by NVML; None: not known."""
    active: float | None = None
    """Percent of the time in which its GPU does anything, by the device's own counters: NVML counts
    short gaps as busy (94 % for 74 % on an H200)."""
    sm: float | None = None
    """Percent of its GPU's multiprocessors that are at work, by the same; None without them."""

    @property
    def address(self) -> str:
        """As `address_of` has it."""
        return address_of(self.pid, self.host)

    @property
    def busy(self) -> float | None:
        """Percent, by the finer of both."""
        return self.gpu_busy if self.active is None else self.active

    @property
    def empty(self) -> float | None:
        """Part of the time that its GPU is busy with few of its multiprocessors at most, as it is
        with collectives that nothing hides; None where that is not known."""
        if self.active is None or self.sm is None:
            return None
        return emptiness(self.active, self.sm)


def _exposed_ns(times: DdpTimes) -> int:
    """What of the exchange the backward does not hide."""
    return max(0, times.comm_ns - times.overlap_ns)


def _iteration_ns(times: DdpTimes) -> int:
    """Forward, backward and what of the exchange neither hides."""
    return times.forward_ns + times.backward_ns + _exposed_ns(times)


def _whole_ns(sample: Mapping[int, DdpTimes]) -> int:
    """Of the rank that takes longest: what it waits for others is in it."""
    return max(map(_iteration_ns, sample.values()), default=0)


def _square(value: float) -> float:
    return value * value


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
    lateness: Mapping[Late, Lateness] = field(default_factory=dict)
    """Since when, of those that come late in the last steps."""
    paced_ns: float | None = None
    """Mean step by the marks of all ranks, from the first of these steps until now. A host that
    only queues its work runs ahead and then waits where it reads a result: how long single steps
    take on its clock says nothing of the device. None where hosts wait in their collectives: then
    each step's own length counts."""

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
    def walls_ns(self) -> list[int]:
        """Length of each of these steps."""
        if self.paced_ns is not None:
            return [round(self.paced_ns)] * len(self.steps)
        return [one.wall_ns for one in self.steps]

    @property
    def step_ns(self) -> float:
        """Mean length."""
        return sum(self.walls_ns) / max(1, len(self.steps))

    @property
    def on_device(self) -> bool:
        """The device's clock timed them, so that their transfer is known."""
        return any(one.transfer_ns is not None for one in self.steps)

    @property
    def transfer(self) -> Share | None:
        """Part of the time in which data moves; None where that is not known."""
        both = zip(self.steps, self.walls_ns, strict=True)
        rows = [(one.transfer_ns, wall) for one, wall in both if one.transfer_ns is not None]
        return share_of(*zip(*rows, strict=True)) if rows else None

    @property
    def exposed(self) -> Share | None:
        """What DistributedDataParallel has measured: from the first all-reduce to the end of the
        last, less what the backward computed meanwhile; the least over the ranks, since the others'
        waits are not transfer. One iteration of a hundred is no mean: it is never more than all the
        transfer that the collectives of every step have at most. One of the warm-up, which takes
        several steps' time on every rank, shows nothing of them."""
        shares = []
        for sample in self.ddp:
            times = [sample[rank] for rank in self.ranks if rank in sample]
            if len(times) < len(self.ranks) or any(one.comm_ns <= 0 for one in times):
                continue
            if min(map(_iteration_ns, times)) <= limits.SAMPLE_OF_WARM_UP * self.step_ns:
                shares.append(min(1.0, min(map(_exposed_ns, times)) / self.step_ns))
        if not shares:
            return None
        middle, transfer = median(shares), self.transfer
        found = Share(middle, min(shares), max(shares))
        if len(shares) < 2:
            found = Share(middle, middle / 2, min(1.0, 1.5 * middle))
        return found if transfer is None else at_most(found, transfer.high)

    def _length_ns(self, sample: Mapping[int, DdpTimes]) -> float:
        """A step's with this iteration: what was measured in a long one is no part of the mean. A
        neighbour that came took a step from 10 to 22 ms, and the pace was 16."""
        return max(self.step_ns, _whole_ns(sample))

    def waiting(self, rank: int) -> Share:
        """Part of its time that this rank waits for later ones."""
        return self._share([one.waiting_ns[self.ranks.index(rank)] for one in self.steps])

    def late(self, rank: int) -> Share:
        """Part of the time that every other rank waits for this one, beyond the next latest."""
        return self._share([one.late_ns[self.ranks.index(rank)] for one in self.steps])

    def _share(self, parts_ns: list[int]) -> Share:
        return share_of(parts_ns, self.walls_ns)

    @property
    def waits(self) -> Share:
        """Part of its time that a rank waits, on average over the ranks: what even work saves."""
        ranks = len(self.ranks)
        return self._share([sum(one.waiting_ns) // ranks for one in self.steps])

    def lost_to(self, rank: int, own_left: float = 1.0) -> float | None:
        """By DistributedDataParallel's own times: the part of the time that goes by on the other
        ranks between the end of their backward and the end of the exchange, beyond what it is on
        this one, which nobody keeps waiting; None where it has none. A rank that waits in its first
        buckets still computes the rest of its backward: that wait costs nothing. `own_left`: of
        this one's exchange, the part that it takes without others on its GPU."""
        parts: list[float] = []
        for sample in self.ddp:
            exposed = {one: _exposed_ns(times) for one, times in sample.items()}
            others = [ns for one, ns in exposed.items() if one != rank]
            if rank in exposed and others:
                parts.append(
                    max(0, min(others) - own_left * exposed[rank]) / self._length_ns(sample)
                )
        return min(1.0, median(parts)) if parts else None

    def sampled(self, rank: int) -> bool:
        """The iterations that DistributedDataParallel timed tell how late this rank is in others:
        it has issued all collectives, they took about as long as these steps do, and most of what
        is waited for this rank is waited in steps like any other, not in rare ones that no sample
        met."""
        timed = [one for sample in self.ddp for one in sample.values()]
        buckets = min((one.buckets for one in timed), default=0)
        if sum(one.collectives for one in self.steps) > buckets * len(self.steps):
            return False
        whole_ns = [_whole_ns(sample) for sample in self.ddp if sample]
        if not whole_ns or median(whole_ns) < limits.SAMPLE_AS_LONG * self.step_ns:
            return False
        late_ns = [one.late_ns[self.ranks.index(rank)] for one in self.steps]
        return median(late_ns) >= limits.AS_LATE * mean(late_ns) > 0

    def computed(self, ranks: Sequence[int]) -> float:
        """Part of a step that the busiest of these ranks computes in forward and backward, by
        DistributedDataParallel's own times; 0 where it has none of iterations as short as these."""
        parts = [
            (times.forward_ns + times.backward_ns) / self.step_ns
            for sample in self.ddp
            for rank in ranks
            if (times := sample.get(rank)) is not None and _iteration_ns(times) <= self.step_ns
        ]
        return min(1.0, median(parts)) if parts else 0.0

    @property
    def in_step(self) -> bool:
        """All hosts issue their collectives within a step of each other: none is so far ahead that
        its own calls wait for a full queue, and its phases are its own work."""
        ahead = [max(one.ahead_ns) for one in self.steps if one.ahead_ns]
        return bool(ahead) and median(ahead) < self.step_ns

    def lead(self, rank: int) -> Share | None:
        """Part of the time by which all other ranks' hosts issue the last collective of a step
        before this one's does, where that begins anew in each step: they wait for their devices
        meanwhile. None where leads are carried on from step to step, as of hosts that never wait
        and take as long themselves; where too few steps show it; or where clocks of several hosts
        would have to agree.

        Whether they are is told by von Neumann's ratio (1941), the mean square of the differences
        between successive leads over their variance: 2 where they are independent, near 0 where
        each is the one before and a little more; and by that of medians, which a single step does
        not move. A lead that two steady hosts keep for ever, with more jitter than drift, has 2 as
        well: on two H200s none was so steady."""
        rows = [
            (one.number, wall_ns, self._lead_ns(one, rank))
            for one, wall_ns in zip(self.steps, self.walls_ns, strict=True)
            if one.ahead_ns
        ]
        leads_ns = [lead_ns for _, _, lead_ns in rows]
        changes_ns = [
            abs(after[2] - before[2])
            for before, after in pairwise(rows)
            if after[0] == before[0] + 1
        ]
        if len(self.nodes) > 1 or len(changes_ns) < limits.FEWEST_LEADS:
            return None
        middle_ns = median(leads_ns)
        off_ns = [abs(lead_ns - middle_ns) for lead_ns in leads_ns]
        is_anew = mean(map(_square, changes_ns)) > limits.LEADS_ANEW * pvariance(
            leads_ns
        ) and _square(median(changes_ns)) > limits.LEADS_ANEW_BY_MEDIANS * _square(median(off_ns))
        if not is_anew or middle_ns <= 0:
            return None
        walls_ns = [wall_ns for _, wall_ns, _ in rows]
        return share_of([max(0, lead_ns) for lead_ns in leads_ns], walls_ns)

    def _lead_ns(self, step: StepExchange, rank: int) -> int:
        at = self.ranks.index(rank)
        others = (ns for place, ns in enumerate(step.ahead_ns) if place != at)
        return min(others) - step.ahead_ns[at]

    def times_late(self) -> list[int]:
        """By rank: in how many steps it was the last by so much that it matters."""
        last = [rank for rank, _ in self.last_ones()]
        return [last.count(rank) for rank in self.ranks]

    def last_ones(self) -> list[tuple[int, int]]:
        """Of the steps in which a rank is the last by so much that it matters: it, and by how many
        ns."""
        found = []
        for one, wall_ns in zip(self.steps, self.walls_ns, strict=True):
            most = max(one.late_ns)
            if most >= limits.LATE_STEP * wall_ns:
                found.append((self.ranks[one.late_ns.index(most)], most))
        return found


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
    places: tuple[StandingRank, ...] = ()
    """Where ranks are meanwhile that are in no collective."""
    ended: tuple[int, ...] = ()
    """Ranks here whose process has ended, while others run."""
    stopped: tuple[int, ...] = ()
    """Ranks here that a signal or a debugger holds, for some seconds."""
    reading: bool = False
    """Its collectives have been asked for, not long ago, and none are known yet."""
    doing: Mapping[int, Doing] = field(default_factory=dict)
    """By rank, of those that run."""
    lateness: Mapping[int, Lateness] = field(default_factory=dict)
    """Since when, of the rank that is late by its marks, where collectives are not read."""

    def facts(self, rank: int) -> RankFacts | None:
        """Of one of them."""
        return next((one for one in self.ranks if one.rank == rank), None)

    @property
    def idle(self) -> float | None:
        """Part of the time that the GPU of every rank here does nothing at the least; None where
        that is not known of all."""
        busy = [one.busy for one in self.ranks]
        known = [percent for percent in busy if percent is not None]
        return 1 - max(known) / 100 if known and len(known) == len(busy) else None

    @property
    def others(self) -> int:
        """Ranks that wait for a late one: of the whole job."""
        return max(self.world_size, len(self.ranks)) - 1
