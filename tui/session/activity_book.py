"""What the GPUs did: the picture's series, and the means that the verdict looks at."""

from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from msgspec import structs

from tui.observations import Activity, ActivitySeen, GpusSeen, GpuUse
from tui.over_time.growing import Growing
from tui.over_time.series import Series
from tui.over_time.step_edges import StepEdges
from tui.session.gpu_conditions import conditions
from tui.session.gpu_series import NAMES, GpuSeries
from tui.session.readings import HELD, Readings, means, together
from tui.session.scope import MOST_SAMPLES, Reading
from tui.snapshot import Sawtooth
from tui.verdict.window import GpuActivity

HELD_USES: Final = 3_600
READ_NS: Final = 10_000_000
"""To which the spacing of the readings is rounded: theirs jitters."""
BEFORE_FIRST_NS: Final = 300_000_000
NEWEST_NS: Final = 1_000_000_000
"""What a number on the screen speaks of: one that changed every 100 ms could not be read."""
LATE_NS: Final = {"gpm": 30_000_000}
"""A GPM sample holds the counters of the refresh before the last one. Measured on an H200: loads of
known rhythm (130, 170, 310 ms) were seen 85 to 100 ms later than they ran."""


class ActivityBook:
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
        """Take one reading of what the GPUs did, at the time that it speaks of."""
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
        """The series of that title with what a reading adds; None where it tells nothing."""
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

    def readings(self) -> list[Reading]:
        """The newest readings by GPM of how many multiprocessors were active, oldest first."""
        told: list[Reading] = []
        for seen in self._readings.last(MOST_SAMPLES):
            sm = _mean(seen.gpus, lambda gpu: gpu.sm if gpu.source == "gpm" else None)
            if sm is not None:
                told.append(Reading(seen.t_ns - seen.gpus[0].interval_ns, seen.t_ns, sm))
        return told

    def busy_since(self, since_ns: int) -> list[Reading]:
        """How busy the GPUs were in the readings that end after a moment, oldest first: the part of
        the time in which anything ran, else in which multiprocessors were active."""
        told: list[Reading] = []
        for seen in self._readings.after(since_ns):
            busy = _mean(seen.gpus, lambda gpu: gpu.sm if gpu.busy is None else gpu.busy)
            if busy is not None:
                told.append(Reading(seen.t_ns - seen.gpus[0].interval_ns, seen.t_ns, busy))
        return told[::-1]

    def between(self, start_ns: int, end_ns: int) -> GpuActivity | None:
        """Means over a stretch of time, weighted by the readings' lengths; None without any."""
        rows: list[Activity] = []
        for seen in self._readings.after(start_ns):
            if seen.t_ns <= end_ns + BEFORE_FIRST_NS:
                rows += seen.gpus
        if not rows:
            return None
        devices = max(1, len({row.index for row in rows}))
        uses = [gpu for seen in self._uses if start_ns < seen.t_ns <= end_ns for gpu in seen.gpus]
        latest = self._uses[-1].gpus if self._uses else ()
        were = conditions(uses, latest)
        mean = together(rows)
        return GpuActivity(
            source=mean.source,
            seconds=mean.interval_ns / 1e9 / devices,
            busy=mean.busy,
            sm=mean.sm,
            occupancy=mean.occupancy,
            tensor=mean.tensor,
            fp32=mean.fp32,
            dram=mean.dram,
            pcie_rx_mb_s=mean.pcie_rx_mb_s,
            pcie_tx_mb_s=mean.pcie_tx_mb_s,
            throttled=were.throttled,
            others=were.others,
            others_sm=were.others_sm,
            throttle_reasons=were.throttle_reasons,
            clock_lost=were.clock_lost,
            neighbours=were.neighbours,
        )


def _shown(gpu: Activity) -> float | None:
    return gpu.busy if gpu.sm is None else gpu.sm


def _mean(gpus: Sequence[Activity], of: Callable[[Activity], float | None]) -> float | None:
    known = [value for gpu in gpus if (value := of(gpu)) is not None]
    return sum(known) / len(known) if known else None
