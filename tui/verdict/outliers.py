"""Steps that take far longer than the others, by something without a phase."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from ...probe.wire.messages import Step
from .pauses import Pauses, warm_recent
from .statistics import share_of
from .step_time import is_python, pace_of, spent, wall_of
from .thresholds.causes import OUTLIER_ALONE, OUTLIER_LEAST, OUTLIER_MADS, OUTLIER_RUN
from .thresholds.hysteresis import LEAST_STEPS
from .window import StepWindow


def outliers(window: StepWindow) -> Pauses | None:
    """What such steps have more than others, over all recent steps: a slow logger every 50 steps
    is there twice in a window of 100, too seldom for an interval.

    Waiting for data, evaluations, checkpoints and compilations have rules of their own. A longer
    batch takes longer in its backward as well, and several long steps in a row are a change of
    pace: neither is an outlier here.
    """
    rows = warm_recent(window)
    if len(rows) < LEAST_STEPS or not window.steps:
        return None
    paces = [_unnamed_ns(row) for row in rows]
    limit_ns = _limit_ns(paces)
    if max(paces) <= limit_ns or median(map(_unnamed_ns, window.steps)) > limit_ns:
        return None
    frozen = _is_mostly_forward(rows)
    works = [_work_ns(row, frozen) for row in rows]
    usual = _Usual(median(paces), limit_ns, median(works))
    parts = _apart([usual.excess_ns(*one) for one in zip(rows, paces, works, strict=True)])
    events = sum(part > 0 for part in parts)
    if not events:
        return None
    total = spent(rows)
    return Pauses(
        share=share_of(parts, [wall_of(row) for row in rows]),
        events=events,
        each_ns=sum(parts) / events,
        longest_ns=max(parts),
        every_steps=total.steps / events,
        step_ns=max(0, total.wall_ns - sum(parts)) / max(1, total.steps),
    )


@dataclass(frozen=True, slots=True)
class _Usual:
    """An ordinary step: medians over rows, ns a step."""

    pace_ns: float
    limit_ns: float
    work_ns: float

    def excess_ns(self, row: Step, pace_ns: float, work_ns: float) -> int:
        """What a row took longer, if it is an outlier by something that is not its batch."""
        longer_ns = pace_ns - self.pace_ns
        if pace_ns <= self.limit_ns or row.evaluation_ns or row.checkpoint_ns:
            return 0
        if work_ns - self.work_ns > (1 - OUTLIER_ALONE) * longer_ns:
            return 0
        return round(longer_ns * row.count)


def _limit_ns(paces: Sequence[float]) -> float:
    """From where on a step is out of the ordinary."""
    pace = median(paces)
    spread = median(abs(other - pace) for other in paces)
    return pace + max(OUTLIER_MADS * spread, OUTLIER_LEAST * pace)


def _apart(parts: Sequence[int]) -> list[int]:
    """Without runs of outliers that are too long for single events."""
    kept: list[int] = []
    for is_outlier, run in groupby(parts, key=bool):
        held = list(run)
        too_long = is_outlier and len(held) > OUTLIER_RUN
        kept += [0] * len(held) if too_long else held
    return kept


def _unnamed_ns(row: Step) -> float:
    """Time of one step without what has a name of its own."""
    return max(0.0, pace_of(row) - row.data_ns / max(1, row.count))


def _is_mostly_forward(rows: Sequence[Step]) -> bool:
    """Most of the net is frozen: then a longer batch shows in its forward alone."""
    return sum(row.backward_ns for row in rows) < sum(row.forward_ns for row in rows) / 2


def _work_ns(row: Step, frozen: bool) -> float:
    """The part of one step that grows with its batch. Without a backward it is the forward."""
    named = sum(ns for name, ns in row.phases.items() if not is_python(name))
    forward_ns = 0 if row.backwards and not frozen else row.forward_ns
    return (forward_ns + row.backward_ns + row.optimizer_ns + named) / max(1, row.count)
