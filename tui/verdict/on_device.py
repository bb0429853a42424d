"""The window's steps on the GPU's own clock: which waits left it idle, and whether the host keeps
ahead."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from msgspec import structs

from ..steps import GpuStep, Step
from .findings import EvidenceSource
from .gpu_activity import GpuActivity
from .statistics import Share, share_of
from .step_time import wall_of
from .thresholds.gpu import (
    CAUGHT_UP_IDLE,
    CAUGHT_UP_NS,
    CAUGHT_UP_SHARE,
    GPU_BUSY,
    LAG_UNCERTAIN,
    LEAST_GPU_STEPS,
    LEAST_LONG_GPU_STEPS,
    LONG_GPU_NS,
)
from .window import RunFacts, StepWindow

NO_SUMS: Final = ("start_ns", "end_ns", "data_max_ns")
SUMS: Final = tuple(
    name for name in Step.__struct_fields__ if name.endswith("_ns") and name not in NO_SUMS
)
"""Times of a host's row that are sums over its steps: all but these."""


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Sums and medians over the window's measured steps. Times ns, a step."""

    rows: tuple[GpuStep, ...]
    step_ns: float
    exposed_ns: float
    hidden_ns: float
    exposed_share: float
    """Part of the host's wait for data in which the GPU was idle, 0 to 1; 0 without a wait."""
    caught_up: float | None
    """Part of the steps in which the GPU had caught up with the host at the end of forward,
    backward and optimizer alike; None where the clocks are not aligned well enough."""
    lag_ns: float | None
    """Median lag at the end of the optimizer, of the backward where there is none."""
    uncertain_ns: int | None

    @property
    def steps(self) -> int:
        """Measured steps; a merged row counts as many."""
        return sum(row.count for row in self.rows)

    @property
    def abstains(self) -> bool:
        """Lags are known too badly for a verdict."""
        return self.caught_up is None


@lru_cache(maxsize=4)
def on_device(window: RunFacts) -> OnDevice | None:
    """None where too few steps were measured (`enough`). Nearly every rule asks
    for it, so it is worked out once a window."""
    rows = window.gpu_steps
    if not enough(rows):
        return None
    steps = sum(row.count for row in rows)
    step_ns = sum(row.wall_ns for row in rows) / steps
    exposed = sum(row.exposed_ns for row in rows)
    wait = sum(row.host_wait_ns for row in rows)
    uncertain = [row.uncertain_ns for row in rows if row.uncertain_ns is not None]
    worst = sorted(uncertain)[len(uncertain) // 2] if uncertain else None
    return OnDevice(
        rows=rows,
        step_ns=step_ns,
        exposed_ns=exposed / steps,
        hidden_ns=sum(row.hidden_ns for row in rows) / steps,
        exposed_share=min(1.0, exposed / wait) if wait > 0 else 0.0,
        caught_up=_caught_up(rows, worst, idle_of(window)),
        lag_ns=_lag(rows),
        uncertain_ns=worst,
    )


def enough(rows: Sequence[GpuStep]) -> bool:
    """Measured steps for the GPU's clock to count: `LEAST_GPU_STEPS`, or a few long ones."""
    steps = sum(row.count for row in rows)
    if steps >= LEAST_GPU_STEPS:
        return True
    return steps >= LEAST_LONG_GPU_STEPS and sum(row.wall_ns for row in rows) >= LONG_GPU_NS


@lru_cache(maxsize=4)
def paired(window: StepWindow) -> tuple[tuple[Step, GpuStep], ...]:
    """The measured rows that have a row on the host, each with that. Steps of a millisecond travel
    several to a row, before it is known which of them were measured: one of these has its row's
    mean, under the row's number. Worked out once a window."""
    steps = window.steps
    last = [row.number for row in steps]
    found: list[tuple[Step, GpuStep]] = []
    for device in window.gpu_steps:
        at = bisect_left(last, device.number)
        if at == len(steps) or steps[at].number - steps[at].count >= device.number:
            continue
        host = steps[at]
        if host.count != device.count:
            if device.count != 1:
                continue
            host = _mean_of(host)
        elif host.number != device.number:
            continue
        found.append((host, device))
    return tuple(found)


def _mean_of(row: Step) -> Step:
    """One step of a merged row."""
    times = {name: getattr(row, name) // row.count for name in SUMS}
    return structs.replace(
        row,
        count=1,
        end_ns=row.start_ns + (row.end_ns - row.start_ns) // row.count,
        phases={name: ns // row.count for name, ns in row.phases.items()},
        **times,
    )


def idle_of(window: RunFacts) -> float:
    """Part of the time in which nothing ran on the GPU, by its counters; 0 without counters."""
    activity = window.activity
    return 0.0 if activity is None or activity.busy is None else max(0.0, 1 - activity.busy / 100)


def counted_by(activity: GpuActivity) -> EvidenceSource:
    """The source of the GPU's counters, as evidence names it."""
    return "gpm" if activity.source == "gpm" else "nvml"


def keeps_up_ns(step_ns: float, idle: float = 0.0) -> float:
    """The lag below which the GPU has caught up with the host: tau, or a small part of the
    time that it is `idle` in a step: so little queued work explains none of it."""
    return max(
        CAUGHT_UP_NS,
        CAUGHT_UP_SHARE * step_ns,
        CAUGHT_UP_IDLE * idle * step_ns,
    )


def _caught_up(rows: Sequence[GpuStep], uncertain_ns: int | None, idle: float) -> float | None:
    caught = known = 0
    for row in rows:
        lags = [
            lag
            for lag in (row.lag_forward_ns, row.lag_backward_ns, row.lag_optimizer_ns)
            if lag is not None
        ]
        if not lags:
            continue
        known += row.count
        if max(lags) <= keeps_up_ns(row.wall_ns / row.count, idle):
            caught += row.count
    if not known or uncertain_ns is None:
        return None
    step_ns = sum(row.wall_ns for row in rows) / sum(row.count for row in rows)
    if uncertain_ns > LAG_UNCERTAIN * keeps_up_ns(step_ns, idle):
        return None
    return caught / known


def _lag(rows: Sequence[GpuStep]) -> float | None:
    lags = sorted(
        lag
        for row in rows
        if (lag := first_known(row.lag_optimizer_ns, row.lag_backward_ns, row.lag_data_ns))
        is not None
    )
    return lags[len(lags) // 2] if lags else None


def first_known(*lags: int | None) -> int | None:
    """Of several lags."""
    return next((lag for lag in lags if lag is not None), None)


def is_clocked(window: StepWindow) -> bool:
    """What phases take is known: on a CPU, and by a GPU's own clock."""
    return not window.gpu_present or on_device(window) is not None


def is_the_limit(window: StepWindow) -> bool:
    """What a net computes is the time that it takes: on a CPU, and on a GPU that hardly waits for
    its host; by a GPU's own clock and counters."""
    if not window.gpu_present:
        return True
    busy = None if window.activity is None else window.activity.busy
    return is_clocked(window) and (busy or 0.0) >= 100 * GPU_BUSY


def share_of_steps(window: StepWindow, part: Callable[[Step | GpuStep], int]) -> Share:
    """What a part of each row, ns, is of the steps' time: on the GPU's clock where that is read."""
    device = on_device(window)
    if device is not None:
        return share_of(list(map(part, device.rows)), [row.wall_ns for row in device.rows])
    return share_of(list(map(part, window.steps)), list(map(wall_of, window.steps)))


def share_of_net(window: StepWindow) -> Share:
    """Forward and backward, likewise."""
    return share_of_steps(window, lambda row: row.forward_ns + row.backward_ns)
