"""Memory that grows: on the device, in the training process, or in its workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.figures import duration, mib
from tui.verdict.findings import Evidence, Finding, Source
from tui.verdict.growth import Growth, growth
from tui.verdict.spent import spent
from tui.verdict.warmup import warm_after
from tui.verdict.window import MemoryPoint, Window

_NEVER: Final = 1e9
"""Steps; beyond it there is no other end of the range."""


@dataclass(frozen=True, slots=True)
class _Place:
    """One memory that may grow."""

    kind: str
    """"GPU" or "host"."""
    whose: str
    source: Source
    points: Sequence[MemoryPoint]
    limit_bytes: int | None
    held_bytes: int
    """Of the limit, now."""
    advice: tuple[str, ...]


def memory_growth(window: Window) -> Finding | None:
    """`growth` is provisional; `leak` is growth that went on, or that will fill the memory soon.

    The device comes first: it is the smaller one.
    """
    warm = warm_after(window.all_recent)
    for place in _places(window):
        found = growth([point for point in place.points if point.step > warm])
        if found is not None:
            return _finding(window, found, place)
    return None


def newest_ns(window: Window) -> int:
    """When memory was last looked at; 0 before."""
    looks = (window.memory, window.gpu_memory)
    return max((look[-1].t_ns for look in looks if look), default=0)


def _places(window: Window) -> tuple[_Place, ...]:
    kept = (
        "look for results kept with their graph: append loss.item(), not loss",
        "look for lists and caches that are never cleared",
    )
    copied = (
        "workers copy what they touch: keep the dataset's metadata in arrays, not in Python lists",
        "look for a cache in __getitem__: every worker has its own",
    )
    on_gpu = [MemoryPoint(one.step, one.t_ns, one.allocated) for one in window.gpu_memory]
    held = window.memory[-1].bytes if window.memory else 0
    limit = window.memory_limit_bytes
    gpu_held = window.gpu_memory[-1].reserved if window.gpu_memory else 0
    return (
        _Place("GPU", "tensors", "hook", on_gpu, window.gpu_memory_limit_bytes, gpu_held, kept),
        _Place("host", "the training process", "proc", window.memory, limit, held, kept),
        _Place("host", "the workers' memory", "proc", window.worker_memory, limit, held, copied),
    )


def _finding(window: Window, found: Growth, place: _Place) -> Finding:
    rise, steps = found.last.bytes - found.first.bytes, found.last.step - found.first.step
    grown = f"{mib(found.first.bytes)} to {mib(found.last.bytes)} over {steps:,} steps"
    evidence = [Evidence(f"{place.whose}: {grown}", place.source, rise / 1024 / 1024, "MiB")]
    left = _steps_left(place, found)
    leak = found.leak or (left is not None and left[0] <= policy.URGENT_STEPS)
    severity = "warning"
    if leak and left is not None:
        total = spent(window.steps)
        step_hours = total.wall_ns / max(1, total.steps) / 3.6e12
        if left[0] * step_hours <= policy.URGENT_HOURS:
            severity = "critical"
        until = f"{left[0]:,.0f}" + (f" to {left[1]:,.0f}" if left[1] < _NEVER else "")
        text = f"memory is full in {until} steps, {duration(left[0] * step_hours)} at the earliest"
        evidence.append(Evidence(text, place.source, left[0], "steps"))
    pace = f"{mib(100 * found.slope)} per 100 steps"
    return plain(
        "memory-growth",
        "leak" if leak else "growth",
        "critical" if severity == "critical" else "warning",
        f"{place.kind} memory grows {pace}",
        tuple(evidence),
        place.advice,
    )


def _steps_left(place: _Place, found: Growth) -> tuple[float, float] | None:
    """Steps until the memory is full, by the steepest and the flattest slope of the interval."""
    if place.limit_bytes is None or found.slope_high <= 0 or not place.held_bytes:
        return None
    room = max(0, place.limit_bytes - place.held_bytes)
    slowest = room / found.slope_low if found.slope_low > 0 else _NEVER
    return room / found.slope_high, slowest
