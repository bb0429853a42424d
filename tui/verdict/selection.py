"""Which steps speak for the run now: warm, of the present pace and work, and not too old."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from probe.wire.messages import Step
from tui.verdict import policy
from tui.verdict.changes import Change, last_change
from tui.verdict.spent import pace_of
from tui.verdict.warmup import warm_after
from tui.verdict.workload import new_work, what_changed


@dataclass(frozen=True, slots=True)
class Choice:
    """The window's steps."""

    steps: tuple[Step, ...]
    warmup_left: int
    """Steps still needed before there can be a verdict; 0 once there are enough."""
    cut_ns: int
    """Start of the present pace and work: give it back with the next call."""
    change: Change | None
    """Set by the call that found it; its `index` counts in `steps` of before the cut: use
    `steps[0]` as the first step of the new pace."""


def choose_window(all_steps: Sequence[Step], cut_ns: int = 0) -> Choice:
    """The steps to judge from all that are held, oldest first.

    It grows from 10 to 100 steps; where those are less than 5 s, it is the last 5 s. `cut_ns` is
    what the last call returned: a change of pace stays cut after its far side has been forgotten.
    """
    if not all_steps:
        return Choice((), policy.WARMUP_STEPS + policy.LEAST_STEPS, cut_ns, None)
    warm = warm_after(all_steps)
    recent = _present(all_steps[-policy.CHANGE_ROWS :], warm, cut_ns)
    change = _change(recent)
    if change is not None:
        cut_ns = recent[change.index].start_ns
    newest = all_steps[-1]
    rows = all_steps[-policy.WINDOW_ROWS :]
    if newest.end_ns - rows[0].start_ns < policy.FAST_WINDOW_NS:
        rows = _since(all_steps, newest.end_ns - policy.FAST_WINDOW_NS)
    kept = _present(rows, warm, cut_ns)
    have = sum(row.count for row in kept)
    left = max(0, policy.LEAST_STEPS - have)
    if left and not have:
        left += max(0, warm - newest.number)
    return Choice(tuple(kept), left, cut_ns, change)


def _change(rows: Sequence[Step]) -> Change | None:
    """Where the pace or the work last became another, and what did."""
    paces_ns = [pace_of(row) for row in rows]
    found, work = last_change(paces_ns), new_work(rows)
    if work is not None and (found is None or found.index < work):
        found = Change(work, median(paces_ns[:work]), median(paces_ns[work:]))
    if found is None:
        return None
    return replace(found, what=what_changed(rows[: found.index], rows[found.index :]))


def _present(rows: Sequence[Step], warm: int, cut_ns: int) -> list[Step]:
    return [row for row in rows if row.start_ns >= cut_ns and row.number - row.count >= warm]


def _since(rows: Sequence[Step], start_ns: int) -> Sequence[Step]:
    """Rows that ended after `start_ns`."""
    first = len(rows)
    while first and rows[first - 1].end_ns > start_ns:
        first -= 1
    return rows[first:]
