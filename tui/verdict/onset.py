"""The step at which memory began to grow, and what happened there."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tui.verdict import policy
from tui.verdict.blocks import in_blocks
from tui.verdict.growth import Growth
from tui.verdict.window import MemoryPoint, Moment


@dataclass(frozen=True, slots=True)
class Onset:
    """Growth did not begin with the run."""

    step: int
    """Give or take a block."""
    beside: Moment | None
    """What happened there."""


def onset(points: Sequence[MemoryPoint], grown: Growth, moments: Sequence[Moment]) -> Onset | None:
    """Where the pace of a series changed to that of the growth; None where it had it always.

    CUSUM over the rises of the blocks: it falls while they are below their mean, so that it is
    lowest where they change. A single jump counts as twice the growth's pace at most.
    """
    size = grown.blocks.size
    lows = in_blocks(points, size, policy.DROP_BLOCKS).lows
    most = policy.ONSET_MOST * grown.slope.middle
    paces = [
        max(-most, min(most, (after.bytes - before.bytes) / (after.step - before.step)))
        for before, after in pairwise(lows)
        if after.step > before.step
    ]
    if len(paces) != len(lows) - 1 or len(paces) < 2 * policy.ONSET_BLOCKS:
        return None
    mean = sum(paces) / len(paces)
    sums = list(accumulate(pace - mean for pace in paces))
    before = min(range(len(sums)), key=sums.__getitem__) + 1
    if before < policy.ONSET_BLOCKS or before > len(paces) - policy.ONSET_BLOCKS:
        return None
    after_pace = sum(paces[before:]) / (len(paces) - before)
    if sum(paces[:before]) / before >= policy.ONSET_BEFORE * after_pace:
        return None
    return Onset(lows[before].step, _nearest(lows[before].step, size, moments))


def _nearest(step: int, within: int, moments: Sequence[Moment]) -> Moment | None:
    near = [moment for moment in moments if abs(moment.step - step) <= within]
    return min(near, key=lambda moment: abs(moment.step - step), default=None)
