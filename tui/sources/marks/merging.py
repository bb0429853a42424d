"""Very short steps travel merged, so that the wire carries a bounded number of rows a second."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ...steps import GpuStep, Step

AnyStep = TypeVar("AnyStep", Step, GpuStep)


def merge_steps(steps: list[Step], most: int) -> list[Step]:
    """At most `most` rows for `steps`, in order: neighbours are summed and their counts added.

    Sums stay exact; what is lost is the spread inside a row.
    """
    return _merged(steps, most, _sum)


def merge_gpu_steps(steps: list[GpuStep], most: int) -> list[GpuStep]:
    """The same for steps on the device's clock; the lags of a row are means."""
    return _merged(steps, most, _sum_gpu)


def _merged(
    steps: list[AnyStep], most: int, total: Callable[[Sequence[AnyStep]], AnyStep]
) -> list[AnyStep]:
    if len(steps) <= most:
        return steps
    size = -(-len(steps) // most)
    return [total(steps[i : i + size]) for i in range(0, len(steps), size)]


def _phases(steps: Sequence[AnyStep]) -> dict[str, int]:
    phases: dict[str, int] = {}
    for step in steps:
        for name, ns in step.phases.items():
            phases[name] = phases.get(name, 0) + ns
    return phases


def _sum(steps: Sequence[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    return Step(
        number=steps[-1].number,
        count=sum(step.count for step in steps),
        start_ns=steps[0].start_ns,
        end_ns=steps[-1].end_ns,
        data_ns=sum(step.data_ns for step in steps),
        startup_ns=sum(step.startup_ns for step in steps),
        forward_ns=sum(step.forward_ns for step in steps),
        backward_ns=sum(step.backward_ns for step in steps),
        optimizer_ns=sum(step.optimizer_ns for step in steps),
        other_ns=sum(step.other_ns for step in steps),
        evaluation_ns=sum(step.evaluation_ns for step in steps),
        checkpoint_ns=sum(step.checkpoint_ns for step in steps),
        compile_ns=sum(step.compile_ns for step in steps),
        phases=_phases(steps),
        fetches=sum(step.fetches for step in steps),
        backwards=sum(step.backwards for step in steps),
        optimizer_steps=sum(step.optimizer_steps for step in steps),
        samples=_samples(steps),
        ready=steps[0].ready,
        data_max_ns=max(step.data_max_ns for step in steps),
        inference=steps[-1].inference,
        evaluation_startup_ns=sum(step.evaluation_startup_ns for step in steps),
        shared_startup_ns=sum(step.shared_startup_ns for step in steps),
        evaluation_data_ns=sum(step.evaluation_data_ns for step in steps),
    )


def _samples(steps: Sequence[Step]) -> int | None:
    """Of all of them, those whose batches were not looked at as large as the others."""
    known = [step for step in steps if step.samples is not None]
    if not known:
        return None
    samples = sum(step.samples or 0 for step in known)
    fetches, looked_at = (sum(step.fetches for step in some) for some in (steps, known))
    return round(samples * fetches / looked_at) if looked_at else samples


def _sum_gpu(steps: Sequence[GpuStep]) -> GpuStep:
    """The row's length on the device is the sum of its steps': between them others may be missing,
    which were not sampled."""
    if len(steps) == 1:
        return steps[0]
    return GpuStep(
        number=steps[-1].number,
        count=sum(step.count for step in steps),
        start_ns=steps[0].start_ns,
        end_ns=steps[-1].end_ns,
        device=steps[0].device,
        gpu_start_ns=steps[0].gpu_start_ns,
        gpu_end_ns=steps[0].gpu_start_ns + sum(step.wall_ns for step in steps),
        data_ns=sum(step.data_ns for step in steps),
        startup_ns=sum(step.startup_ns for step in steps),
        forward_ns=sum(step.forward_ns for step in steps),
        backward_ns=sum(step.backward_ns for step in steps),
        optimizer_ns=sum(step.optimizer_ns for step in steps),
        other_ns=sum(step.other_ns for step in steps),
        evaluation_ns=sum(step.evaluation_ns for step in steps),
        checkpoint_ns=sum(step.checkpoint_ns for step in steps),
        compile_ns=sum(step.compile_ns for step in steps),
        phases=_phases(steps),
        host_wait_ns=sum(step.host_wait_ns for step in steps),
        lag_start_ns=_mean([step.lag_start_ns for step in steps]),
        lag_data_ns=_mean([step.lag_data_ns for step in steps]),
        lag_forward_ns=_mean([step.lag_forward_ns for step in steps]),
        lag_backward_ns=_mean([step.lag_backward_ns for step in steps]),
        lag_optimizer_ns=_mean([step.lag_optimizer_ns for step in steps]),
        uncertain_ns=_mean([step.uncertain_ns for step in steps]),
    )


def _mean(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) // len(known) if known else None
