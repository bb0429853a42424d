"""The probe's lags against the script's own events: the arithmetic. All ns but what is named."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwatch.tui.steps import GpuStep

Look = Sequence[float]
"""(host ns, device ns, half of what is open): the clocks side by side on an idle device."""
Mark = tuple[int, str, int, int, float]
"""(step, boundary, host ns at the boundary, host ns at the own record, device ns of that)."""

BOUNDARIES: Final = ("data", "forward", "backward", "optimizer")
IDLE_NS: Final = 200_000
"""An event that is passed sooner than this after its record found an idle device (20 us is usual).
"""


@dataclass(frozen=True)
class Lag:
    """One boundary of one loop: medians over its steps, and errors of the probe's."""

    boundary: str
    steps: int
    probe_ns: float
    truth_ns: float
    error_ns: float
    """Of the medians: what the lag table is off by."""
    median_error_ns: float
    """Of the single steps, absolute."""
    worst_error_ns: float


def host_of(device_ns: float, looks: Sequence[Look]) -> float:
    """A device's time on the host's clock, between two looks: the clocks drift evenly."""
    (host_a, device_a, _), (host_b, device_b, _) = looks
    if device_b == device_a:
        return host_a + device_ns - device_a
    return host_a + (device_ns - device_a) * (host_b - host_a) / (device_b - device_a)


def true_lag(mark: Mark, looks: Sequence[Look]) -> float:
    """How long after the boundary the device reached it.

    A busy device passes the probe's event and the script's together, when it is done with what was
    before: device time less the boundary's. An idle one passes each as it is put: device time less
    the record's.
    """
    _, _, boundary_ns, own_ns, device_ns = mark
    passed_ns = host_of(device_ns, looks)
    if passed_ns - own_ns < IDLE_NS:
        return passed_ns - own_ns
    return passed_ns - boundary_ns


def lags(
    reported: Mapping[int, GpuStep], marks: Sequence[Mark], looks: Sequence[Look]
) -> list[Lag]:
    """One row a boundary; without those that no step has."""
    found = []
    for boundary in BOUNDARIES:
        pairs = [
            (lag, true_lag(mark, looks))
            for mark in marks
            if mark[1] == boundary
            and mark[0] in reported
            and (lag := getattr(reported[mark[0]], f"lag_{boundary}_ns")) is not None
        ]
        if pairs:
            found.append(_lag(boundary, pairs))
    return found


def allowed_ns(truth_ns: float) -> float:
    """50 us, or 2 % of the lag (the issue); below 2.5 ms the first is the larger."""
    return max(50_000.0, 0.02 * abs(truth_ns))


def _lag(boundary: str, pairs: Sequence[tuple[float, float]]) -> Lag:
    probe_ns = statistics.median(probe for probe, _ in pairs)
    truth_ns = statistics.median(truth for _, truth in pairs)
    errors = [abs(probe - truth) for probe, truth in pairs]
    return Lag(
        boundary,
        len(pairs),
        probe_ns,
        truth_ns,
        abs(probe_ns - truth_ns),
        statistics.median(errors),
        max(errors),
    )
