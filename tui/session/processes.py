"""The target's processes, and what the DataLoader workers did over the last minute."""

from collections import deque
from collections.abc import Collection
from typing import Final

from ..model.observations import ProcessesSeen, ProcessUse
from ..model.snapshot import Surroundings
from ..timeseries.series import Series
from ..timeseries.writer import Growing
from ..verdict.window import HostUse, WorkerUse
from ..wording.processes import cores_used

HELD: Final = 60
"""A minute at one look a second: the window of the verdict."""
INTERVAL_NS: Final = 1_000_000_000
"""A look covers the second before it: the first one after the window covers its end."""
CHARTED: Final = 3_600
"""Samples of the chart: an hour."""
CURRENT: Final = 5
"""The machine's and the main process's use are means of the last few looks."""


class ProcessStore:
    """The last looks at the process tree."""

    def __init__(self) -> None:
        self._readings: deque[ProcessesSeen] = deque(maxlen=HELD)
        self._used = Growing("cores", "cores", "cores", "proc", None, INTERVAL_NS, CHARTED)

    def seen(self, seen: ProcessesSeen) -> None:
        """Take one look."""
        self._readings.append(seen)
        used = cores_used(seen.processes)
        if used is not None:
            self._used.add(seen.t_ns, used)

    @property
    def series(self) -> tuple[Series, ...]:
        """Cores that the tree uses; nothing before the second look."""
        return (self._used.series(),) if len(self._readings) > 1 else ()

    @property
    def processes(self) -> tuple[ProcessUse, ...]:
        """As they were last seen."""
        return self._readings[-1].processes if self._readings else ()

    @property
    def stopped(self) -> bool:
        """The training process was stopped when it was last seen: by a signal, or by a debugger."""
        return any(_main(one) and one.status in ("T", "t") for one in self.processes)

    @property
    def cores(self) -> float | None:
        """Cores that the target may use."""
        return self._readings[-1].cores if self._readings else None

    @property
    def machine_cpu_percent(self) -> float | None:
        """Of all cores together, a mean over the last looks."""
        looks = list(self._readings)[-CURRENT:]
        return _mean([look.machine_cpu_percent for look in looks])

    def surroundings(self) -> Surroundings | None:
        """For the faces."""
        if not self._readings:
            return None
        newest = self._readings[-1]
        return Surroundings(
            busy_percent=newest.machine_cpu_percent,
            others_percent=newest.others_cpu_percent,
            throttled_percent=newest.throttled_percent,
            around=newest.around,
        )

    def host_use(self, start_ns: int, end_ns: int) -> HostUse:
        """How the training got its cores over an interval; where that is too short for a reading,
        by the newest."""
        last_ns = end_ns + INTERVAL_NS
        looks = [look for look in self._readings if start_ns < look.t_ns <= last_ns]
        looks = looks or list(self._readings)[-1:]
        others = _mean([look.others_cpu_percent for look in looks])
        main = [process for look in looks for process in look.processes if _main(process)]
        return HostUse(
            main_cpu_percent=_mean([process.cpu_percent for process in main]),
            thread_cpu=_part([process.thread_cpu_percent for process in main]),
            run_delay=_part([process.run_delay_percent for process in main]),
            cpu_throttled=_part([look.throttled_percent for look in looks]),
            others_cores=None if others is None else others / 100,
            beside_cores=_mean([_beside(look) for look in looks]),
            in_kernel=_part([process.in_kernel_percent for process in main]),
            page_faults_s=_mean([process.page_faults_s for process in main]),
            pin_cpu=_part([process.pin_cpu_percent for process in main]),
        )

    def worker_use(self, apart: Collection[int] = (), since_ns: int = 0) -> WorkerUse | None:
        """The workers over the window, but for these pids; None where there are none now. What they
        use is that of readings which begin after `since_ns`: they wait while a training warms up.
        """

        def counts(process: ProcessUse) -> bool:
            return process.role == "worker" and process.pid not in apart

        count = sum(counts(process) for process in self.processes)
        if not count:
            return None
        looks = [[p for p in look.processes if counts(p)] for look in self._readings]
        begun = [0, *(look.t_ns for look in self._readings)]
        warm = [look for look, t_ns in zip(looks, begun, strict=False) if t_ns >= since_ns]
        rows = [process for look in warm for process in look]
        first_ns: dict[int, int] = {}
        for look in self._readings:
            for process in filter(counts, look.processes):
                first_ns.setdefault(process.pid, look.t_ns)
        now = [first_ns[process.pid] for process in self.processes if counts(process)]
        each: dict[int, list[float]] = {p.pid: [] for p in self.processes if counts(p)}
        for process in rows:
            if process.cpu_percent is not None and process.pid in each:
                each[process.pid].append(process.cpu_percent)
        read = [
            sum(process.read_bytes_s or 0.0 for process in look)
            for look in warm
            if any(process.read_bytes_s is not None for process in look)
        ]
        return WorkerUse(
            count=count,
            cpu_percent=_mean([process.cpu_percent for process in rows]),
            disk_wait_share=sum(p.status == "D" for p in rows) / len(rows) if rows else None,
            read_bytes_s=_mean(list(read)),
            run_delay=_part([process.run_delay_percent for process in rows]),
            exited=len(first_ns) - count,
            oldest_s=(self._readings[-1].t_ns - min(now)) / 1e9,
            cpu_each=tuple((min(of), sum(of) / len(of)) for of in each.values() if of),
            other_threads_percent=_mean([_beside_main_thread(process) for process in rows]),
        )


def _main(process: ProcessUse) -> bool:
    return process.role == "main"


def _beside_main_thread(process: ProcessUse) -> float | None:
    """What its other threads use, in percent of a core."""
    if process.cpu_percent is None or process.thread_cpu_percent is None:
        return None
    return max(0.0, process.cpu_percent - process.thread_cpu_percent)


def _mean(values: list[float | None] | list[float]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _beside(look: ProcessesSeen) -> float | None:
    """Cores that the tree used beside one thread of the main process; None in its first look."""
    used = 0.0
    for process in look.processes:
        if process.cpu_percent is None:
            if _main(process):
                return None
            continue
        if _main(process):
            thread = process.thread_cpu_percent
            used += max(0.0, process.cpu_percent - (100 if thread is None else thread))
        else:
            used += process.cpu_percent
    return used / 100


def _part(percents: list[float | None]) -> float | None:
    """Their mean, 0 to 1."""
    mean = _mean(percents)
    return None if mean is None else min(1.0, mean / 100)
