"""What the GPUs did and how they were: the sawtooth, and the means that the verdict uses."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import Final

from msgspec import structs

from ..model.observations import Activity, ActivitySeen, GpusSeen, GpuUse
from ..model.snapshot import Sawtooth
from ..timeseries.series import Series, StepEdges
from ..timeseries.writer import Growing
from ..verdict.gpu_activity import GpuActivity, Neighbour
from .gpu_steps import NAMES, GpuSeries
from .step_profile import MOST_SAMPLES, ProfileSample

# How the GPUs were over an interval: what else used them, what lowered their clocks.

LANE_MB_S: Final = {1: 250.0, 2: 500.0, 3: 985.0, 4: 1_969.0, 5: 3_938.0, 6: 7_563.0}
"""One lane one way by PCIe generation, after its line code: 2.5, 5, 8, 16, 32 and 64 GT/s with 8
bits of 10, from the third on 128 of 130, in the sixth 242 of 256 bytes of a flit."""
HARMLESS: Final = frozenset({"power cap"})
"""Reasons that are normal: large GPUs run at their power cap."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Of several GPUs the one that others use most, as a step waits for the last of its GPUs."""

    throttled: float
    throttle_reasons: tuple[str, ...]
    clock_lost: float | None
    others: int
    others_sm: float | None
    neighbours: tuple[Neighbour, ...]


def conditions(uses: Sequence[GpuUse], latest: Sequence[GpuUse]) -> Conditions:
    """From an interval's readings, and the newest, which shows which processes are there now."""
    slowed = [gpu for gpu in uses if slowed_by(gpu)]
    reasons = Counter(reason for gpu in slowed for reason in sorted(slowed_by(gpu)))
    lost = [_clock_lost(gpu) for gpu in slowed]
    known = [part for part in lost if part is not None]
    crowd = max((gpu.others for gpu in latest), key=len, default=())
    return Conditions(
        throttled=len(slowed) / len(uses) if uses else 0.0,
        throttle_reasons=tuple(reason for reason, _ in reasons.most_common()),
        clock_lost=sum(known) / len(uses) if len(known) == len(lost) and uses else None,
        others=len(crowd),
        others_sm=_others_sm(uses or latest),
        neighbours=tuple(
            Neighbour(one.pid, one.name, one.memory_bytes, one.sm_percent)
            for one in sorted(crowd, key=lambda one: -(one.sm_percent or 0))
        ),
    )


def slowed_by(gpu: GpuUse) -> frozenset[str]:
    """Reasons that slow a GPU down."""
    return frozenset(gpu.throttle_reasons) - HARMLESS


def _clock_lost(gpu: GpuUse) -> float | None:
    """Part of its speed that it lacks; None where its clock or its highest is not known."""
    if gpu.sm_clock_mhz is None or not gpu.max_sm_clock_mhz:
        return None
    return max(0.0, 1 - gpu.sm_clock_mhz / gpu.max_sm_clock_mhz)


def _others_sm(uses: Sequence[GpuUse]) -> float | None:
    """Percent of the busiest device's time; None where the target cannot be samples apart."""
    devices: dict[int, list[float]] = {}
    for gpu in uses:
        used = [other.sm_percent for other in gpu.others if other.sm_percent is not None]
        if gpu.target_memory_bytes is not None and len(used) == len(gpu.others):
            devices.setdefault(gpu.index, []).append(sum(used))
    means = (sum(shares) / len(shares) for shares in devices.values())
    return min(100.0, max(means)) if devices else None


# The readings of what the GPUs did over the last hour: the newest as they came, older ones merged.

SINGLE: Final = 1_500
"""Two and a half minutes at ten readings a second; some 550 bytes each."""
MERGED_OF: Final = 10
HELD: Final = 36_000
"""An hour of them, single and merged."""


class Readings:
    """In time order."""

    def __init__(self) -> None:
        self._newest: deque[ActivitySeen] = deque()
        self._older: deque[ActivitySeen] = deque(maxlen=(HELD - SINGLE) // MERGED_OF)

    def __len__(self) -> int:
        return len(self._older) + len(self._newest)

    def add(self, seen: ActivitySeen) -> None:
        """One more, later than all others."""
        self._newest.append(seen)
        if len(self._newest) >= SINGLE + MERGED_OF:
            self._older.append(merged([self._newest.popleft() for _ in range(MERGED_OF)]))

    def last(self, count: int) -> list[ActivitySeen]:
        """The newest of the single ones, oldest first."""
        held = len(self._newest)
        return [self._newest[at] for at in range(max(0, held - count), held)]

    def after(self, t_ns: int) -> Iterator[ActivitySeen]:
        """Those that end after a moment, newest first."""
        for seen in chain(reversed(self._newest), reversed(self._older)):
            if seen.t_ns <= t_ns:
                return
            yield seen


def merged(readings: Sequence[ActivitySeen]) -> ActivitySeen:
    """Several as one, of each GPU the mean."""
    return ActivitySeen(t_ns=readings[-1].t_ns, gpus=means(readings))


def means(readings: Sequence[ActivitySeen]) -> tuple[Activity, ...]:
    """Of each GPU over all of them."""
    rows: dict[int, list[Activity]] = {}
    for seen in readings:
        for gpu in seen.gpus:
            rows.setdefault(gpu.index, []).append(gpu)
    return tuple(together(rows[index]) for index in sorted(rows))


def together(rows: Sequence[Activity]) -> Activity:
    """Means weighted by the readings' lengths, over all of them; the first names them."""
    return Activity(
        index=rows[0].index,
        source=rows[0].source,
        interval_ns=sum(row.interval_ns for row in rows),
        busy=_weighted(rows, lambda row: row.busy),
        sm=_weighted(rows, lambda row: row.sm),
        occupancy=_weighted(rows, lambda row: row.occupancy),
        tensor=_weighted(rows, lambda row: row.tensor),
        fp32=_weighted(rows, lambda row: row.fp32),
        dram=_weighted(rows, lambda row: row.dram),
        pcie_rx_mb_s=_weighted(rows, lambda row: row.pcie_rx_mb_s),
        pcie_tx_mb_s=_weighted(rows, lambda row: row.pcie_tx_mb_s),
        nvlink_rx_mb_s=_weighted(rows, lambda row: row.nvlink_rx_mb_s),
        nvlink_tx_mb_s=_weighted(rows, lambda row: row.nvlink_tx_mb_s),
    )


def _weighted(rows: Sequence[Activity], of: Callable[[Activity], float | None]) -> float | None:
    total, weight = 0.0, 0
    for row in rows:
        if (value := of(row)) is not None:
            total += value * row.interval_ns
            weight += row.interval_ns
    return total / weight if weight else None


HELD_USES: Final = 3_600
READ_NS: Final = 10_000_000
"""To which the spacing of the readings is rounded: theirs jitters."""
BEFORE_FIRST_NS: Final = 300_000_000
NEWEST_NS: Final = 1_000_000_000
"""What a number on the screen covers: one that changed every 100 ms could not be read."""
LATE_NS: Final = {"gpm": 30_000_000}
"""A GPM sample holds the counters of the refresh before the last one. Measured on an H200: loads of
known rhythm (130, 170, 310 ms) were seen 85 to 100 ms later than they ran."""


class GpuStore:
    """Readings in time order; of several GPUs the mean."""

    def __init__(self) -> None:
        self.gpus: tuple[GpuUse, ...] = ()
        """The slow figures as they were last."""
        self._readings = Readings()
        self._uses: deque[GpusSeen] = deque(maxlen=HELD_USES)
        self._each = GpuSeries()
        self._together: dict[str, Growing] = {}
        """By name and source: the means over the GPUs that the sawtooth shows."""
        self._shown: Growing | None = None
        self._tensor: Growing | None = None

    def seen(self, seen: ActivitySeen) -> None:
        """Take one reading of what the GPUs did, at the time that it is of."""
        if seen.gpus:
            seen = structs.replace(seen, t_ns=seen.t_ns - LATE_NS.get(seen.gpus[0].source, 0))
        self._readings.add(seen)
        interval_ns = self._interval_ns()
        self._each.did(seen, interval_ns)
        newest = seen.gpus[0] if seen.gpus else None
        if newest is None:
            return
        title = "GPU busy %" if newest.sm is None else "SM active %"
        self._shown = self._grown(title, seen, _shown, interval_ns) or self._shown
        tensor = self._grown("tensor cores %", seen, lambda gpu: gpu.tensor, interval_ns)
        self._tensor = tensor if newest.sm is None else tensor or self._tensor

    def used(self, seen: GpusSeen) -> None:
        """Take one reading of how the GPUs are."""
        self.gpus = seen.gpus
        self._uses.append(seen)
        self._each.were(seen)

    def series(self) -> tuple[Series, ...]:
        """Of each GPU what it did and how it was."""
        return self._each.all()

    def sawtooth(self, step_starts_ns: StepEdges) -> Sawtooth | None:
        """The picture; None until there are two readings."""
        if self._shown is None or len(self._readings) < 2:
            return None
        series = self._shown.series()
        return Sawtooth(
            title=series.title,
            source=f"{series.source} {series.interval_ns // 1_000_000} ms",
            note="",
            series=series,
            step_starts_ns=step_starts_ns,
            tensor=self._tensor.series() if self._tensor is not None else None,
        )

    def _interval_ns(self) -> int:
        """How far apart the newest readings are."""
        recent = [gpu.interval_ns for seen in self._readings.last(21) for gpu in seen.gpus]
        return max(1, round(median(recent) / READ_NS)) * READ_NS if recent else READ_NS

    def _grown(
        self,
        title: str,
        seen: ActivitySeen,
        of: Callable[[Activity], float | None],
        interval_ns: int,
    ) -> Growing | None:
        """The series of that title with what a reading adds; None where it adds nothing."""
        value = _mean(seen.gpus, of)
        if value is None:
            return None
        source = NAMES.get(seen.gpus[0].source, seen.gpus[0].source)
        key = f"{title} {source}"
        if key not in self._together:
            name = title.removesuffix(" %")
            self._together[key] = Growing(name, title, "%", source, None, interval_ns, HELD)
        growing = self._together[key]
        growing.interval_ns = interval_ns
        growing.add(seen.t_ns, value, seen.gpus[0].interval_ns)
        return growing

    def newest(self) -> tuple[Activity, ...]:
        """Of each GPU the mean over the last second of its readings."""
        newest = self._readings.last(1)
        if not newest:
            return ()
        return means(list(self._readings.after(newest[0].t_ns - NEWEST_NS)))

    def readings(self) -> list[ProfileSample]:
        """The newest readings by GPM of how many multiprocessors were active, oldest first."""
        samples: list[ProfileSample] = []
        for seen in self._readings.last(MOST_SAMPLES):
            sm = _mean(seen.gpus, lambda gpu: gpu.sm if gpu.source == "gpm" else None)
            if sm is not None:
                samples.append(ProfileSample(seen.t_ns - seen.gpus[0].interval_ns, seen.t_ns, sm))
        return samples

    def busy_since(self, since_ns: int) -> list[ProfileSample]:
        """How busy the GPUs were in the readings that end after a moment, oldest first: the part of
        the time in which anything ran, else in which multiprocessors were active."""
        samples: list[ProfileSample] = []
        for seen in self._readings.after(since_ns):
            busy = _mean(seen.gpus, lambda gpu: gpu.sm if gpu.busy is None else gpu.busy)
            if busy is not None:
                samples.append(ProfileSample(seen.t_ns - seen.gpus[0].interval_ns, seen.t_ns, busy))
        return samples[::-1]

    def between(self, start_ns: int, end_ns: int) -> GpuActivity | None:
        """Means over a time, weighted by the readings' lengths; None without any. Of readings that
        reach beyond it those that lie in it for the most part, and others only where there is none:
        a checkpoint that follows it is no idle time of it."""
        near: list[tuple[int, Activity]] = []
        for seen in self._readings.after(start_ns):
            if seen.t_ns <= end_ns + BEFORE_FIRST_NS:
                near += [(seen.t_ns, gpu) for gpu in seen.gpus]
        if not near:
            return None
        within = [gpu for t_ns, gpu in near if start_ns <= t_ns - gpu.interval_ns // 2 <= end_ns]
        rows = within or [gpu for _, gpu in near]
        devices = max(1, len({row.index for row in rows}))
        uses = [gpu for seen in self._uses if start_ns < seen.t_ns <= end_ns for gpu in seen.gpus]
        latest = self._uses[-1].gpus if self._uses else ()
        were = conditions(uses, latest)
        mean = together(rows)
        return GpuActivity(
            source=mean.source,
            seconds=mean.interval_ns / 1e9 / devices,
            devices=devices,
            busy=mean.busy,
            sm=mean.sm,
            occupancy=mean.occupancy,
            tensor=mean.tensor,
            fp32=mean.fp32,
            dram=mean.dram,
            pcie_rx_mb_s=mean.pcie_rx_mb_s,
            pcie_tx_mb_s=mean.pcie_tx_mb_s,
            pcie_rx_peak_mb_s=max(
                (row.pcie_rx_mb_s for row in rows if row.pcie_rx_mb_s is not None), default=None
            ),
            nvlink_rx_mb_s=mean.nvlink_rx_mb_s,
            nvlink_tx_mb_s=mean.nvlink_tx_mb_s,
            link_mb_s=min(filter(None, map(_link_mb_s, latest)), default=None),
            throttled=were.throttled,
            others=were.others,
            others_sm=were.others_sm,
            throttle_reasons=were.throttle_reasons,
            clock_lost=were.clock_lost,
            neighbours=were.neighbours,
        )


def _link_mb_s(gpu: GpuUse) -> float | None:
    """What its link to the host carries one way; None where that is not known."""
    lane = LANE_MB_S.get(gpu.pcie_generation or 0)
    return None if lane is None or not gpu.pcie_width else lane * gpu.pcie_width


def _shown(gpu: Activity) -> float | None:
    return gpu.busy if gpu.sm is None else gpu.sm


def _mean(gpus: Sequence[Activity], of: Callable[[Activity], float | None]) -> float | None:
    known = [value for gpu in gpus if (value := of(gpu)) is not None]
    return sum(known) / len(known) if known else None
