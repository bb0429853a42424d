"""The ranks of the target's job on this host, by their pages over the last seconds."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from ...probe.wire import page
from ..model.observations import RanksSeen, RankUse
from ..model.snapshot import Rank
from ..model.straggler import late_of
from ..steps import OPEN_PHASE
from ..timeseries.writer import Growing
from ..verdict.window import LateRank

SPAN_NS: Final = 10_000_000_000
LEAST_STEPS: Final = 3
"""Of long steps the means go back to so many, but no further than what is held."""
HELD: Final = 120
"""Looks that a rank's means can go back to."""
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

    def seen(self, seen: RanksSeen) -> None:
        """Take one look. A rank with another pid is a new process: its past is another's."""
        for use in seen.ranks:
            readings = self._readings.setdefault(use.rank, deque(maxlen=HELD))
            if readings and readings[-1][1].pid != use.pid:
                readings.clear()
            readings.append((seen.t_ns, use))
        self.world_size = seen.world_size
        self.ranks = tuple(self._rank(seen, use) for use in seen.ranks)

    @property
    def late(self) -> LateRank | None:
        """The one that the others wait for, as of the last look."""
        found = late_of(self.ranks)
        if found is None or found.rank.step_ms is None:
            return None
        rank = found.rank
        return LateRank(
            rank.rank,
            rank.pid,
            rank.is_target,
            found.phase,
            found.ms,
            found.others_ms,
            found.rank.step_ms,
        )

    def _rank(self, seen: RanksSeen, use: RankUse) -> Rank:
        sums = self._sums(use.rank, seen.t_ns)
        return Rank(
            rank=use.rank,
            pid=use.pid,
            is_target=use.pid == self._pid,
            state=_state(use, seen.t_ns),
            steps=use.steps,
            step_ms=sums.wall_ns / sums.counted / 1e6 if sums.counted else None,
            data_share=sums.share(sums.data_ns),
            forward_share=sums.share(sums.forward_ns),
            backward_share=sums.share(sums.backward_ns),
            optimizer_share=sums.share(sums.optimizer_ns),
            open_phase=OPEN_PHASE.get(use.open_kind, "other"),
            open_since_ns=use.open_since_ns,
            last_seen_ns=use.heartbeat_ns,
            device=use.device,
            memory_bytes=use.device_memory_bytes,
            memory_total_bytes=use.device_total_bytes,
            active=self._grown(seen, use).series(),
        )

    def _sums(self, rank: int, now_ns: int) -> _Sums:
        taken: list[RankUse] = []
        for t_ns, use in reversed(self._readings[rank]):
            if t_ns <= now_ns - SPAN_NS and sum(one.counted for one in taken) >= LEAST_STEPS:
                break
            taken.append(use)
        return _Sums(
            counted=sum(use.counted for use in taken),
            wall_ns=sum(use.wall_ns for use in taken),
            data_ns=sum(use.data_ns for use in taken),
            forward_ns=sum(use.forward_ns for use in taken),
            backward_ns=sum(use.backward_ns for use in taken),
            optimizer_ns=sum(use.optimizer_ns for use in taken),
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


def _state(use: RankUse, now_ns: int) -> str:
    if not use.running or use.state == page.STATE_ENDED:
        return "ended"
    if use.state in OUT:
        return "unwatched"
    return "silent" if now_ns - use.heartbeat_ns > SILENT_NS else "live"
