"""Where a step ends, by the marks of a loop."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..recorder import Recorder
from ..wire import marks

RECENT: Final = 2_048
"""Times and words that tell what marks a loop has."""


class StepEnds:
    """Whether a mark ends a step, by the marks that a loop has: a call of `probe.step`; else a
    fetch behind an optimizer's step; else, without fetches, an optimizer's step behind a backward,
    or every one where there is no backward; else a fetch, or a backward."""

    def __init__(self, kinds: set[int]) -> None:
        self._updated = self._began = False
        if marks.STEP in kinds:
            self._end, self._behind = marks.STEP, 0
        elif marks.OPTIMIZER_LEAVE in kinds and marks.FETCH_ENTER in kinds:
            self._end, self._behind = marks.FETCH_ENTER, marks.OPTIMIZER_LEAVE
        elif marks.OPTIMIZER_LEAVE in kinds:
            backwards = marks.BACKWARD_ENTER in kinds
            self._end = marks.OPTIMIZER_LEAVE
            self._behind = marks.BACKWARD_ENTER if backwards else marks.OPTIMIZER_ENTER
        else:
            fetches = marks.FETCH_ENTER in kinds
            self._end, self._behind = marks.FETCH_ENTER if fetches else marks.BACKWARD_ENTER, 0

    def at(self, kind: int) -> bool:
        """A mark of this kind has come."""
        if kind == self._behind:
            self._began = True
        if kind != self._end or (self._behind and not self._began):
            return False
        self._began = False
        return True


def step_ends(recorder: Recorder) -> StepEnds:
    """By the marks that it has put lately."""
    return StepEnds({marks.kind_and_detail(word)[0] for word in recorder.tail(RECENT)[1::2]})


def usual_ns(ends_ns: Sequence[int], recorder: Recorder) -> int:
    """Of a step between these ends; where there are not two, by the marks of the loop before them
    (the median step). 0 where those have not two either."""
    if len(ends_ns) > 1:
        return (ends_ns[-1] - ends_ns[0]) // (len(ends_ns) - 1)
    tail, ends = recorder.tail(RECENT), step_ends(recorder)
    kinds = (marks.kind_and_detail(word)[0] for word in tail[1::2])
    ended = [t_ns for t_ns, kind in zip(tail[::2], kinds, strict=True) if ends.at(kind)]
    each = sorted(later - earlier for earlier, later in pairwise(ended))
    return each[len(each) // 2] if each else 0
