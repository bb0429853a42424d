"""Which of a run's first steps are left out: kernels are being chosen, queues are filling."""

from collections.abc import Sequence
from statistics import median

from probe.wire.messages import Step
from tui.verdict import policy
from tui.verdict.spent import pace_of


def warm_after(rows: Sequence[Step]) -> int:
    """Number of the last step of the warm-up; it may lie ahead of the newest row.

    `rows` begin with the oldest that is known. Deciding looks at the first steps only, so the
    answer stays once it is passed, and is 0 when those are no longer there.
    """
    first = rows[0] if rows else None
    if first is not None and first.number - first.count >= _latest(policy.COMPILE_HORIZON):
        return 0
    early = [row for row in rows[: _latest(policy.COMPILE_HORIZON)] if _is_early(row)]
    compiled = max((row.number for row in early if row.compile_ns), default=0)
    least = policy.WARMUP_STEPS
    if compiled:
        least = max(policy.WARMUP_STEPS_COMPILING, compiled + policy.COMPILE_SETTLES)
    latest = _latest(compiled)
    for index in range(len(early)):
        row = early[index]
        done = row.number - row.count
        if done >= latest:
            break
        if done >= least and _is_stable(early[index : index + policy.STABLE_STEPS]):
            return done
    return latest


def _latest(compiled: int) -> int:
    """The warm-up never lasts longer than this many steps."""
    if not compiled:
        return policy.WARMUP_GIVE_UP
    settled = max(policy.WARMUP_STEPS_COMPILING, compiled + policy.COMPILE_SETTLES)
    return settled + policy.STABLE_STEPS


def _is_early(row: Step) -> bool:
    return row.number - row.count < _latest(policy.COMPILE_HORIZON) and (
        not row.compile_ns or row.number <= policy.COMPILE_HORIZON
    )


def _is_stable(rows: Sequence[Step]) -> bool:
    """Consecutive steps that take about the same time."""
    if sum(row.count for row in rows) < policy.STABLE_STEPS:
        return False
    paces = [pace_of(row) for row in rows]
    middle = median(paces)
    return all(abs(pace - middle) <= policy.STABLE_WITHIN * middle for pace in paces)
