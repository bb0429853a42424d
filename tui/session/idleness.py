"""When the GPU was idle and when it was busy, as far as anything tells."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, NamedTuple

from probe.wire.messages import GpuStep, Step
from tui.session.scope import Reading
from tui.verdict import policy

State = Literal["idle", "busy"]


class Stretch(NamedTuple):
    """Idle, or busy, all through."""

    start_ns: int
    end_ns: int
    state: State


class Idleness:
    """Stretches that do not overlap, in time order; and readings, each a mean over its time."""

    def __init__(self, stretches: Sequence[Stretch], readings: Sequence[Reading]) -> None:
        self._stretches = stretches
        self._readings = readings

    def during(self, start_ns: int, end_ns: int) -> State | None:
        """What it was all through, including as much on both sides as moments are uncertain; None
        where it changed, or where nobody knows."""
        start_ns, end_ns = start_ns - policy.MOMENT_NS, end_ns + policy.MOMENT_NS
        return self._of_stretches(start_ns, end_ns) or self._of_readings(start_ns, end_ns)

    def _of_stretches(self, start_ns: int, end_ns: int) -> State | None:
        at = bisect_left(self._stretches, end_ns, key=lambda stretch: stretch.end_ns)
        if at == len(self._stretches) or self._stretches[at].start_ns > start_ns:
            return None
        return self._stretches[at].state

    def _of_readings(self, start_ns: int, end_ns: int) -> State | None:
        at = bisect_left(self._readings, start_ns, key=lambda reading: reading.end_ns)
        states = set()
        reached_ns = start_ns
        for reading in self._readings[at:]:
            if reading.start_ns > reached_ns + policy.MOMENT_NS or reached_ns >= end_ns:
                break
            states.add(state_of(reading.value))
            reached_ns = reading.end_ns
        return states.pop() if len(states) == 1 and reached_ns >= end_ns else None


def state_of(percent: float) -> State | None:
    """What a reading says of every moment in it; None: now this, now that."""
    if percent < policy.IDLE_BELOW:
        return "idle"
    return "busy" if percent >= policy.BUSY_FROM else None


def waits_on_gpu(rows: Sequence[GpuStep], steps: Sequence[Step]) -> list[Stretch]:
    """Where the GPU's own clock saw it wait for data: at the start of the steps that were measured
    and have one fetch. Of several nobody knows when the others were."""
    simple = {step.start_ns for step in steps if _is_simple(step)}
    return [
        Stretch(row.gpu_start_ns, row.gpu_start_ns + row.exposed_ns, "idle")
        for row in rows
        if row.start_ns in simple and row.exposed_ns and row.uncertain_ns is not None
    ]


def waits_on_host(steps: Sequence[Step]) -> list[Stretch]:
    """Where the steps that have one fetch waited for data, and where they did not."""
    stretches: list[Stretch] = []
    for step in filter(_is_simple, steps):
        until_ns = step.start_ns + step.startup_ns + step.data_ns
        stretches.append(Stretch(step.start_ns, until_ns, "idle"))
        stretches.append(Stretch(until_ns, step.end_ns, "busy"))
    return stretches


def _is_simple(step: Step) -> bool:
    return step.count == 1 and step.fetches == 1
