"""Numbers about a run of steps. Merged rows count as often as they say."""

from collections.abc import Sequence
from operator import truediv

from probe.wire.messages import Step
from tui.session.phases import phases_of
from tui.session.spreads import Spreads, percentile
from tui.snapshot import StepStats


def step_stats(
    steps: Sequence[Step], total: int, spreads: Spreads | None = None
) -> StepStats | None:
    """The statistics of `steps`; None without any. `total`: steps since the probe was armed.

    `spreads`: of about the same steps, which are not worked out here.
    """
    counts = [step.count for step in steps]
    walls = [step.end_ns - step.start_ns for step in steps]
    count, wall_ns = sum(counts), sum(walls)
    if not count or wall_ns <= 0:
        return None
    # A merged row knows its sum only, so its steps all get its mean.
    means = sorted(zip(map(truediv, walls, counts), counts, strict=True))
    inference = steps[-1].inference
    return StepStats(
        total=total,
        in_window=count,
        window_s=(steps[-1].end_ns - steps[0].start_ns) / 1e9,
        p50_ms=percentile(means, count, 0.50) / 1e6,
        p95_ms=percentile(means, count, 0.95) / 1e6,
        max_ms=means[-1][0] / 1e6,
        steps_s=count / (wall_ns / 1e9),
        samples_s=_samples_a_second(steps),
        inference=inference,
        phases=phases_of(steps, count, inference, spreads.phases if spreads else {}),
        error_ms=spreads.whole.error_ms if spreads else None,
        merged=spreads.merged if spreads else 1,
        whole=spreads.whole if spreads else None,
    )


def _samples_a_second(steps: Sequence[Step]) -> float | None:
    """Over the steps whose batches were looked at; None when none was."""
    looked = [(step.samples, step.end_ns - step.start_ns) for step in steps if step.samples]
    wall_ns = sum(ns for _, ns in looked)
    if not wall_ns:
        return None
    return sum(samples for samples, _ in looked) / (wall_ns / 1e9)
