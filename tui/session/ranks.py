"""The ranks of the target's job on this host, by their pages over the last seconds."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from ...probe.wire import page
from ..messages import DdpTimes
from ..model.observations import CollectivesSeen, PendingSeen, RanksSeen, RankUse
from ..model.snapshot import Rank
from ..steps import OPEN_PHASE
from ..timeseries.writer import Growing
from ..verdict.job.exchange import Fabric, StepExchange
from ..verdict.job.facts import ExchangeFacts, Job, RankFacts, RankPhase
from ..verdict.job.late import late_rank
from ..verdict.job.standing import Doing, Pending, StandingRank
from ..verdict.thresholds import ranks as limits
from ..verdict.window import InCollectives
from .lateness import LateHistory, lateness_by_marks

SPAN_NS: Final = 10_000_000_000
LEAST_STEPS: Final = 3
"""Of long steps the means go back to so many, but no further than what is held."""
HELD: Final = 120
"""Looks that a rank's means can go back to."""
MOST_SAMPLES: Final = 20
"""Of DistributedDataParallel's own: one in a hundred iterations."""
SILENT_NS: Final = 3_000_000_000
"""A probe writes four times a second."""
READ_NS: Final = 1_000_000_000
OUT: Final = frozenset({page.STATE_DISARMED, page.STATE_UNINSTALLED})


@dataclass(frozen=True, slots=True)
class _Sums:
    """Steps and times of a rank over some readings."""

    counted: int
    wall_ns: int
    data_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    checkpoint_ns: int
    evaluation_ns: int
    busy_percent: float | None
    others_sm: float | None
    """Percent of the device's time."""
    active_percent: float | None
    sm_percent: float | None

    def phases_ms(self) -> dict[RankPhase, float]:
        """The mean step by phases."""
        known: dict[RankPhase, int] = {
            "data": self.data_ns,
            "forward": self.forward_ns,
            "backward": self.backward_ns,
            "optimizer": self.optimizer_ns,
            "checkpoint": self.checkpoint_ns,
            "evaluation": self.evaluation_ns,
        }
        known["other"] = max(0, self.wall_ns - sum(known.values()))
        return {phase: ns / self.counted / 1e6 for phase, ns in known.items()}

    def share(self, ns: int) -> float | None:
        """Part of the steps' time; None without steps."""
        return ns / self.wall_ns if self.wall_ns else None


class RankStore:
    """The readings of the last two minutes, and how active each rank was over the last hour."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._readings: dict[int, deque[tuple[int, RankUse]]] = {}
        """(t_ns, what was seen) by rank."""
        self._active: dict[tuple[int, str], Growing] = {}
        self.ranks: tuple[Rank, ...] = ()
        """As of the last look."""
        self.world_size = 1
        self._exchange_ranks: tuple[int, ...] = ()
        self._exchange_hosts: tuple[str, ...] = ()
        self._exchanges: deque[StepExchange] = deque(maxlen=limits.MOST_STEPS)
        self._exchanged_ns = 0
        self._history = LateHistory()
        self._fabric: Fabric | None = None
        self._places: tuple[StandingRank, ...] = ()
        """Where ranks are that stand in no collective."""
        self._first_ns: int | None = None
        """When several ranks were first seen to make steps."""
        self._pending: Pending | None = None
        self._ddp: dict[int, dict[int, DdpTimes]] = {}
        """By iteration and rank."""

    def seen(self, seen: RanksSeen) -> None:
        """Take one look. A rank with another pid is a new process: its past is another's. One that
        the look does not have is forgotten: who makes up a report could name new ones for ever."""
        left = {use.rank for use in seen.ranks}
        self._readings = {rank: held for rank, held in self._readings.items() if rank in left}
        self._active = {key: grown for key, grown in self._active.items() if key[0] in left}
        for use in seen.ranks:
            readings = self._readings.setdefault(use.rank, deque(maxlen=HELD))
            if readings and readings[-1][1].pid != use.pid:
                readings.clear()
                self._forget_collectives()
            readings.append((seen.t_ns, use))
        if self._first_ns is None and sum(use.counted > 0 for use in seen.ranks) > 1:
            self._first_ns = seen.t_ns
        self.world_size = seen.world_size
        self.ranks = tuple(self._rank(seen, use) for use in seen.ranks)

    def exchanged(self, seen: CollectivesSeen) -> None:
        """Take the collectives of some steps."""
        if (seen.ranks, seen.hosts) != (self._exchange_ranks, self._exchange_hosts):
            self._exchange_ranks, self._exchange_hosts = seen.ranks, seen.hosts
            self._forget_collectives()
        # Older recordings have steps of NCCL by the moments of issuing them.
        on_gpu = any(rank.device is not None for rank in self.ranks)
        steps = [one for one in seen.steps if one.transfer_ns is not None or not on_gpu]
        steps = self._of_one_count(steps)
        self._exchanges += steps
        if steps:
            self._exchanged_ns = seen.t_ns
        self._fabric = seen.fabric or self._fabric
        for one in seen.ddp:
            if one.times.comm_ns:
                self._ddp.setdefault(one.times.iteration, {})[one.rank] = one.times
        while len(self._ddp) > MOST_SAMPLES:
            del self._ddp[next(iter(self._ddp))]
        wall_ns = sum(one.wall_ns for one in self._exchanges)
        while len(self._exchanges) > limits.KEPT_STEPS and wall_ns > limits.KEPT_NS:
            wall_ns -= self._exchanges.popleft().wall_ns
        if steps:
            self._history.add(seen, steps, self._paced_ns(seen.t_ns))
            present_from = self._history.judge(self._exchanges)
            while self._exchanges[0].number < present_from:
                self._exchanges.popleft()

    def _of_one_count(self, steps: list[StepExchange]) -> list[StepExchange]:
        """Those since the numbers last fell: whose steps are counted has begun anew, and what was
        before is of other steps with the same numbers."""
        last = self._exchanges[-1].number if self._exchanges else -1
        first = 0
        for at, one in enumerate(steps):
            if one.number <= last:
                self._forget_collectives()
                first = at
            last = one.number
        return steps[first:]

    def _forget_collectives(self) -> None:
        """They are those of other processes."""
        self._exchanges.clear()
        self._history.clear()
        self._ddp.clear()
        self._fabric = None

    def pending_seen(self, seen: PendingSeen) -> None:
        """Take what stands, or that nothing does any more."""
        self._pending, self._places = None, ()
        if seen.number < 0:
            self._places = seen.ranks
        if seen.number >= 0:
            self._pending = Pending(
                seen.number,
                seen.name,
                seen.bytes,
                seen.inside,
                seen.outside,
                seen.ranks,
                seen.group,
                seen.members,
            )

    def job(self, now_ns: int) -> Job | None:
        """What is known of the job; None of a single rank."""
        if self.world_size < 2:
            return None
        facts = tuple(
            RankFacts(
                rank=rank.rank,
                pid=rank.pid,
                is_target=rank.is_target,
                step_ms=sums.wall_ns / sums.counted / 1e6,
                phases_ms=sums.phases_ms(),
                gpu_busy=sums.busy_percent,
                sharers=self._readings[rank.rank][-1][1].device_others,
                host=rank.host,
                others_sm=sums.others_sm,
                active=sums.active_percent,
                sm=sums.sm_percent,
            )
            for rank in self.ranks
            if rank.state == "live"
            and (sums := self._sums(rank.rank, now_ns, self._history.present_ns)).counted
        )
        on_gpu = any(rank.device is not None for rank in self.ranks)
        exchange = None
        if self._exchanges and now_ns - self._exchanged_ns < limits.STALE_NS:
            samples = tuple(self._ddp.values())
            exchange = ExchangeFacts(
                self._exchange_ranks,
                tuple(self._exchanges),
                samples,
                self._fabric,
                self._exchange_hosts,
                self._history.at(now_ns),
                self._paced_ns(now_ns),
            )
        job = Job(
            world_size=self.world_size,
            ranks=facts,
            exchange=exchange,
            on_gpu=on_gpu,
            pending=self._pending,
            places=self._places,
            ended=tuple(rank.rank for rank in self.ranks if rank.state == "ended"),
            stopped=tuple(rank.rank for rank in self.ranks if rank.state == "stopped"),
            reading=not self._exchanges
            and self._first_ns is not None
            and now_ns - self._first_ns < limits.READ_NS,
            doing={
                rank.rank: Doing(rank.open_phase, rank.open_s(now_ns), rank.pid, rank.host)
                for rank in self.ranks
                if rank.state != "ended"
            },
        )
        late = late_rank(job) if exchange is None else None
        if late is None:
            return job
        number = late.rank.rank
        found = lateness_by_marks(self._readings, number, late.by, now_ns)
        return job if found is None else replace(job, lateness={number: found})

    def in_collectives(self, job: Job | None) -> InCollectives | None:
        """The target's own time in them; None where they are not measured."""
        exchange = job.exchange if job is not None else None
        target = next((one.rank for one in self.ranks if one.is_target), None)
        if exchange is None or target not in exchange.ranks:
            return None
        transfer = exchange.exposed or exchange.transfer
        return InCollectives(exchange.waiting(target).mean, transfer.mean if transfer else 0.0)

    def _rank(self, seen: RanksSeen, use: RankUse) -> Rank:
        sums = self._sums(use.rank, seen.t_ns)
        return Rank(
            rank=use.rank,
            pid=use.pid,
            is_target=use.pid == self._pid and not use.host,
            state=_state(use, seen.t_ns),
            steps=use.steps,
            step_ms=sums.wall_ns / sums.counted / 1e6 if sums.counted else None,
            data_share=sums.share(sums.data_ns),
            forward_share=sums.share(sums.forward_ns),
            backward_share=sums.share(sums.backward_ns),
            optimizer_share=sums.share(sums.optimizer_ns),
            open_phase=OPEN_PHASE.get(use.open_kind, "other"),
            open_since_ns=use.open_since_ns if use.open_kind else None,
            last_seen_ns=use.heartbeat_ns,
            device=use.device,
            memory_bytes=use.device_memory_bytes,
            memory_total_bytes=use.device_total_bytes,
            active=self._grown(seen, use).series(),
            host=use.host,
        )

    def _paced_ns(self, now_ns: int) -> float | None:
        """Mean step by the marks of all ranks since the first of the steps whose collectives are
        known, and of `SPAN_NS` at the least; None where the device did not time these, or no look
        is as new. The first look is of what was before, starting up among it."""
        if not self._exchanges or self._exchanges[-1].transfer_ns is None:
            return None
        first = self._exchanges[0].number
        looks = [
            use
            for rank in self._exchange_ranks
            for t_ns, use in list(self._readings.get(rank, ()))[1:]
            if use.steps >= first or t_ns > now_ns - SPAN_NS
        ]
        counted = sum(use.counted for use in looks)
        return sum(use.wall_ns for use in looks) / counted if counted else None

    def _sums(self, rank: int, now_ns: int, since_ns: int = 0) -> _Sums:
        """Over `SPAN_NS`, or since a moment that is nearer."""
        taken: list[RankUse] = []
        for t_ns, use in reversed(self._readings[rank]):
            counted = sum(one.counted for one in taken)
            if t_ns <= max(since_ns, now_ns - SPAN_NS) and counted >= LEAST_STEPS:
                break
            taken.append(use)
        stepped = [use for use in taken if use.counted]
        return _Sums(
            counted=sum(use.counted for use in taken),
            wall_ns=sum(use.wall_ns for use in taken),
            data_ns=sum(use.data_ns for use in taken),
            forward_ns=sum(use.forward_ns for use in taken),
            backward_ns=sum(use.backward_ns for use in taken),
            optimizer_ns=sum(use.optimizer_ns for use in taken),
            checkpoint_ns=sum(use.checkpoint_ns for use in taken),
            evaluation_ns=sum(use.evaluation_ns for use in taken),
            busy_percent=_mean([use.device_busy_percent for use in stepped]),
            others_sm=_mean([use.device_others_sm for use in taken]),
            active_percent=_mean([use.device_active_percent for use in stepped]),
            sm_percent=_mean([use.device_sm_percent for use in stepped]),
        )

    def _grown(self, seen: RanksSeen, use: RankUse) -> Growing:
        """Its activity, with what this look adds."""
        if use.device_busy_percent is not None:
            growing = self._growing(use.rank, "GPU busy", "nvml")
            growing.add(seen.t_ns, use.device_busy_percent, seen.interval_ns)
            return growing
        if (use.rank, "nvml") in self._active:
            return self._active[use.rank, "nvml"]
        growing = self._growing(use.rank, "not waiting for data", "hook")
        if use.wall_ns:
            length_ns = max(seen.interval_ns, use.wall_ns // max(1, use.counted))
            growing.add(seen.t_ns, 100 * (1 - use.data_ns / use.wall_ns), length_ns)
        return growing

    def _growing(self, rank: int, title: str, source: str) -> Growing:
        key = rank, source
        if key not in self._active:
            name = f"rank {rank}"
            self._active[key] = Growing(name, title, "%", source, None, READ_NS)
        return self._active[key]


def _mean(values: list[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _state(use: RankUse, now_ns: int) -> str:
    if not use.linked:
        return "no link"
    if not use.running or use.state == page.STATE_ENDED:
        return "ended"
    if use.state in OUT:
        return "unwatched"
    if now_ns - use.heartbeat_ns <= SILENT_NS:
        return "live"
    return "stopped" if use.stopped else "silent"
