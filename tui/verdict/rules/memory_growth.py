"""Host memory that grows: of the training process, or of its workers."""

from typing import Final

from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.figures import duration, mib
from tui.verdict.findings import Evidence, Finding
from tui.verdict.growth import Growth, growth
from tui.verdict.spent import spent
from tui.verdict.warmup import warm_after
from tui.verdict.window import MemoryPoint, Window

_NEVER: Final = 1e9
"""Steps; beyond it there is no other end of the range."""


def memory_growth(window: Window) -> Finding | None:
    """`growth` is provisional; `leak` is growth that went on, or that will fill the memory soon."""
    warm = warm_after(window.all_recent)
    main = growth(_warm(window.memory, warm))
    if main is not None:
        advice = (
            "look for results kept with their graph: append loss.item(), not loss",
            "look for lists and caches that are never cleared",
        )
        return _finding(window, main, "the training process", advice)
    workers = growth(_warm(window.worker_memory, warm))
    if workers is None:
        return None
    advice = (
        "workers copy what they touch: keep the dataset's metadata in arrays, not in Python lists",
        "look for a cache in __getitem__: every worker has its own",
    )
    return _finding(window, workers, "the workers' memory", advice)


def _warm(points: tuple[MemoryPoint, ...], warm: int) -> list[MemoryPoint]:
    return [point for point in points if point.step > warm]


def _finding(window: Window, found: Growth, whose: str, advice: tuple[str, ...]) -> Finding:
    rise, steps = found.last.bytes - found.first.bytes, found.last.step - found.first.step
    evidence = [
        Evidence(
            f"{whose}: {mib(found.first.bytes)} to {mib(found.last.bytes)} over {steps:,} steps",
            "proc",
            rise / 1024 / 1024,
            "MiB",
        )
    ]
    left = _steps_left(window, found)
    leak = found.leak or (left is not None and left[0] <= policy.URGENT_STEPS)
    severity = "warning"
    if leak and left is not None:
        total = spent(window.steps)
        step_hours = total.wall_ns / max(1, total.steps) / 3.6e12
        if left[0] * step_hours <= policy.URGENT_HOURS:
            severity = "critical"
        until = f"{left[0]:,.0f}" + (f" to {left[1]:,.0f}" if left[1] < _NEVER else "")
        text = f"memory is full in {until} steps, {duration(left[0] * step_hours)} at the earliest"
        evidence.append(Evidence(text, "proc", left[0], "steps"))
    pace = f"{mib(100 * found.slope)} per 100 steps"
    return plain(
        "memory-growth",
        "leak" if leak else "growth",
        "critical" if severity == "critical" else "warning",
        f"host memory grows {pace}",
        tuple(evidence),
        advice,
    )


def _steps_left(window: Window, found: Growth) -> tuple[float, float] | None:
    """Steps until the memory is full, by the steepest and the flattest slope of the interval."""
    if window.memory_limit_bytes is None or found.slope_high <= 0 or not window.memory:
        return None
    room = max(0, window.memory_limit_bytes - window.memory[-1].bytes)
    slowest = room / found.slope_low if found.slope_low > 0 else _NEVER
    return room / found.slope_high, slowest
