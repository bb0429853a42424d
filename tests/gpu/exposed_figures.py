"""The probe's exposed wait against the trace's, step by step: the arithmetic."""

import statistics
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.tui.steps import GpuStep


@dataclass(frozen=True)
class Exposure:
    """One loop. Shares are percent of the step on the device's clock, errors points of it."""

    steps: int
    truth_share: float
    """Median of the trace's exposed wait."""
    probe_share: float
    host_share: float
    """What the host's clock alone would have blamed: its wait."""
    median_points: float
    worst_points: float
    worst_step: int


def by_number(reported: Sequence[GpuStep], starts_ns: Sequence[int]) -> dict[int, GpuStep]:
    """Steps by the script's own count: the script notes the time just before each begins."""
    found: dict[int, GpuStep] = {}
    for step in reported:
        number = bisect_right(starts_ns, step.start_ns) - 1
        if number >= 0 and (number + 1 == len(starts_ns) or step.start_ns < starts_ns[number + 1]):
            found.setdefault(number, step)
    return found


def exposure(
    reported: Mapping[int, GpuStep], truth_ns: Mapping[int, float], skip: int
) -> Exposure | None:
    """Over the steps that both know; `skip` first ones and the last, which the trace cuts."""
    numbers = [
        number
        for number in sorted(truth_ns)
        if number in reported and skip <= number < max(truth_ns) and reported[number].wall_ns > 0
    ]
    if not numbers:
        return None

    def share(number: int, ns: float) -> float:
        return 100 * ns / reported[number].wall_ns

    errors = {
        number: abs(share(number, reported[number].exposed_ns - truth_ns[number]))
        for number in numbers
    }
    worst = max(errors, key=lambda number: errors[number])
    return Exposure(
        steps=len(numbers),
        truth_share=statistics.median(share(n, truth_ns[n]) for n in numbers),
        probe_share=statistics.median(share(n, reported[n].exposed_ns) for n in numbers),
        host_share=statistics.median(share(n, reported[n].host_wait_ns) for n in numbers),
        median_points=statistics.median(errors.values()),
        worst_points=errors[worst],
        worst_step=worst,
    )
