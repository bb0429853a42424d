"""Phases on the device's clock against the wall: the arithmetic. All ns."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.tui.steps import GpuStep


@dataclass(frozen=True)
class Partition:
    """One window of steps."""

    reported: int
    """Steps of the window that the device reported."""
    steps: int
    sum_ns: int
    """Of all their phases."""
    wall_ns: int
    gap_ns: int
    """Worst difference between a step's phases and its two ends."""

    @property
    def error(self) -> float:
        """Part of the wall time that the phases miss (negative) or invent; with unsampled steps,
        those are taken to be like the others."""
        if not self.reported:
            return -1.0
        return self.sum_ns * (self.steps / self.reported) / self.wall_ns - 1


def phases_ns(step: GpuStep) -> int:
    """All phases of a step."""
    named = (
        step.data_ns,
        step.startup_ns,
        step.forward_ns,
        step.backward_ns,
        step.optimizer_ns,
        step.other_ns,
        step.evaluation_ns,
        step.checkpoint_ns,
        step.compile_ns,
    )
    return sum(named) + sum(step.phases.values())


def partition(reported: Sequence[GpuStep], begin_ns: int, end_ns: int, steps: int) -> Partition:
    """Of the steps that began on the host between two moments at which the device was idle."""
    inside = [step for step in reported if begin_ns <= step.start_ns < end_ns]
    return Partition(
        reported=sum(step.count for step in inside),
        steps=steps,
        sum_ns=sum(phases_ns(step) for step in inside),
        wall_ns=end_ns - begin_ns,
        gap_ns=max((abs(phases_ns(step) - step.wall_ns) for step in inside), default=0),
    )
