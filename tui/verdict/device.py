"""The window on the GPU's own clock: what it felt of a wait, and whether the host keeps ahead."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from probe.wire.messages import GpuStep
from tui.verdict import policy
from tui.verdict.findings import Source
from tui.verdict.window import GpuActivity, Window


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Sums and medians over the window's measured steps. Times ns, a step."""

    rows: tuple[GpuStep, ...]
    step_ns: float
    exposed_ns: float
    hidden_ns: float
    felt: float
    """Part of the host's wait for data that the GPU felt, 0 to 1; 0 where nothing was waited."""
    caught_up: float | None
    """Part of the steps in which the GPU had caught up with the host at the end of forward,
    backward and optimizer alike; None where the clocks are not aligned well enough to say."""
    lag_ns: float | None
    """Median lag at the end of the optimizer, of the backward where there is none."""
    uncertain_ns: int | None

    @property
    def abstains(self) -> bool:
        """Lags are known too badly for a verdict."""
        return self.caught_up is None


@lru_cache(maxsize=4)
def on_device(window: Window) -> OnDevice | None:
    """None while fewer than `policy.LEAST_GPU_STEPS` steps were measured. Nearly every rule asks
    for it, so it is worked out once a window."""
    rows = window.gpu_steps
    steps = sum(row.count for row in rows)
    if steps < policy.LEAST_GPU_STEPS:
        return None
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
        felt=min(1.0, exposed / wait) if wait > 0 else 0.0,
        caught_up=_caught_up(rows, worst, idle_of(window)),
        lag_ns=_lag(rows),
        uncertain_ns=worst,
    )


def idle_of(window: Window) -> float:
    """Part of the time in which nothing ran on the GPU, by its counters; 0 where none says."""
    told = window.activity
    return 0.0 if told is None or told.busy is None else max(0.0, 1 - told.busy / 100)


def counted_by(told: GpuActivity) -> Source:
    """Who told what the GPU did, as evidence names it."""
    return "gpm" if told.source == "gpm" else "nvml"


def keeps_up_ns(step_ns: float, idle: float = 0.0) -> float:
    """The lag below which the GPU has caught up with the host: tau, or a small part of the
    time that it is `idle` in a step: so little queued work explains none of it."""
    return max(
        policy.CAUGHT_UP_NS,
        policy.CAUGHT_UP_SHARE * step_ns,
        policy.CAUGHT_UP_IDLE * idle * step_ns,
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
    if uncertain_ns > policy.LAG_UNCERTAIN * keeps_up_ns(step_ns, idle):
        return None
    return caught / known


def _lag(rows: Sequence[GpuStep]) -> float | None:
    lags = sorted(
        lag
        for row in rows
        if (lag := _first(row.lag_optimizer_ns, row.lag_backward_ns, row.lag_data_ns)) is not None
    )
    return lags[len(lags) // 2] if lags else None


def _first(*lags: int | None) -> int | None:
    return next((lag for lag in lags if lag is not None), None)
