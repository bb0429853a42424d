"""Memory of the fake run: the process grows by 38 MiB in 100 steps, the rest does not."""

from collections.abc import Callable
from math import sin

from gpuwatch.tui.timeseries.series import Series
from gpuwatch.tui.timeseries.writer import Growing
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.memory.trends import Exhaustion, MemoryTrend, Whose
from gpuwatch.tui.verdict.statistics import Slope
from gpuwatch.tui.verdict.window import MemoryPoint

S = 1_000_000_000
MIB = 1024**2
GIB = 1024**3
STEP_S = 1.24
SECONDS = 300

_TITLES = {
    "allocated": ("GPU allocated", "hook", 0, 1),
    "reserved": ("GPU reserved", "hook", 0, 1),
    "others": ("other processes", "nvml", 0, 1),
    "host": ("process", "proc", None, 1),
    "workers": ("workers, PSS", "proc", None, 10),
    "cores": ("cores", "proc", None, 1),
}


def process_bytes(second: int) -> float:
    """After so many of the 300 seconds: 0.38 MiB a step, and some noise."""
    return 4.5 * GIB + 0.38 * MIB * second / STEP_S + 4 * MIB * sin(second * 2.3)


def workers_bytes(second: int) -> float:
    """Level, give or take."""
    return 2.2 * GIB + 3 * MIB * sin(second * 1.1)


def allocated_bytes(second: int) -> float:
    """What is left at the ends of steps, batches of different length behind."""
    return 41 * GIB + 60 * MIB * sin(second * 0.7) + (900 * MIB if second % 61 == 0 else 0)


def leaking_bytes(second: int) -> float:
    """150 MiB in 100 steps."""
    return 61 * GIB + 1.5 * MIB * second / STEP_S + 5 * MIB * sin(second * 0.7)


def cores(second: int) -> float:
    """Four workers and a bit; a burst now and then."""
    return 4.8 + 0.5 * sin(second * 0.9) + (6.0 if second % 97 < 6 else 0.0)


def level(value: float) -> Callable[[int], float]:
    """Always the same."""
    return lambda second: value


def series(name: str, value: Callable[[int], float], now_ns: int) -> Series:
    """The last 300 seconds of one quantity."""
    title, source, device, every = _TITLES[name]
    growing = Growing(name, title, "bytes", source, device, every * S, as_sampled=3_600)
    for second in range(0, SECONDS + 1, every):
        growing.add(now_ns - (SECONDS - second) * S, float(int(value(second))))
    return growing.series()


def trend(
    whose: Whose,
    value: Callable[[int], float],
    now_ns: int,
    mib_a_step: float,
    left: Exhaustion | None,
    finding: Finding | None,
) -> MemoryTrend:
    """Seen over the last four minutes."""
    first, last = (
        MemoryPoint(
            step=18_204 - round((SECONDS - second) / STEP_S),
            t_ns=now_ns - (SECONDS - second) * S,
            bytes=int(value(second)),
        )
        for second in (60, 299)
    )
    slope = Slope(mib_a_step * MIB, 0.95 * mib_a_step * MIB, 1.08 * mib_a_step * MIB)
    return MemoryTrend(whose, slope, first, last, left, finding)
