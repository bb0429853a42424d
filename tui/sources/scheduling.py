"""What keeps a process from running: no core is free for it, or its CPU quota is spent."""

import os
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from tui.sources.cores import CGROUP, QuotaUse, quota_use_of


class ThreadTimes(NamedTuple):
    """Of a thread since its start, ns; None: not told."""

    ran_ns: int | None = None
    delay_ns: int | None = None
    """It was ready to run and did not."""


UNTOLD: Final = ThreadTimes()


def thread_times(pid: int, proc: Path = Path("/proc"), thread: int | None = None) -> ThreadTimes:
    """Of its main thread or another one, by schedstat. A kernel that does not count this says
    "0 0 0", though every thread has run once."""
    try:
        text = (proc / str(pid) / "task" / str(thread or pid) / "schedstat").read_text()
        ran_ns, delay_ns, slices = map(int, text.split())
    except (OSError, ValueError):
        return UNTOLD
    return ThreadTimes(ran_ns, delay_ns) if slices else UNTOLD


def cores_busy_percent(pid: int) -> float | None:
    """How busy the cores are that a process may use, 0 to 100, since the last call from this
    thread. A machine of many cores is not full when the one that the process has is."""
    every = psutil.cpu_percent(None, percpu=True)
    mine = [every[core] for core in os.sched_getaffinity(pid) if core < len(every)]
    return sum(mine) / len(mine) if mine else None


def others_percent(pid: int, busy: float | None, own: list[float | None]) -> float | None:
    """What others use of a process's cores, of one core, when they are `busy` percent and the
    processes of its own tree use `own` percent of a core each."""
    if busy is None or None in own:
        return None
    used = sum(percent for percent in own if percent is not None)
    return max(0.0, busy * len(os.sched_getaffinity(pid)) - used)


class QuotaWatch:
    """How much of the time a process's CPU quota holds it back."""

    def __init__(self, pid: int, root: Path = CGROUP, proc: Path = Path("/proc")) -> None:
        self._where = (pid, root, proc)
        self._before: tuple[int, QuotaUse] | None = None

    def percent(self, now_ns: int) -> float | None:
        """Since the last call; None without a quota, and at the first call.

        The kernel adds up over the cores on which a group is stopped, so the sum alone may say
        more than the time that passed; the part of the periods that were cut short bounds it.
        """
        used = quota_use_of(*self._where)
        before, self._before = self._before, None if used is None else (now_ns, used)
        if used is None or before is None or now_ns <= before[0]:
            return None
        stopped = (used.throttled_ns - before[1].throttled_ns) / (now_ns - before[0])
        periods = used.periods - before[1].periods
        cut = (used.cut_periods - before[1].cut_periods) / periods if periods > 0 else 0.0
        return 100 * max(0.0, min(1.0, stopped, cut))
