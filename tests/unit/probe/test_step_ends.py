"""Where a window's steps end, in loops of every kind."""

import pytest

from gpuwatch.probe.deep.step_ends import StepEnds
from gpuwatch.probe.wire import marks

FETCH = (marks.FETCH_ENTER, marks.FETCH_LEAVE)
BACKWARD = (marks.BACKWARD_ENTER, marks.BACKWARD_LEAVE)
UPDATE = (marks.OPTIMIZER_ENTER, marks.OPTIMIZER_LEAVE)

LOOPS = {
    "plain": ((*FETCH, *BACKWARD, *UPDATE), marks.FETCH_ENTER),
    "accumulation": ((*FETCH, *BACKWARD, *FETCH, *BACKWARD, *UPDATE), marks.FETCH_ENTER),
    "two optimizers": ((*FETCH, *BACKWARD, *UPDATE, *BACKWARD, *UPDATE), marks.FETCH_ENTER),
    "no loader": ((*BACKWARD, *UPDATE), marks.OPTIMIZER_LEAVE),
    "no loader and no backward": (UPDATE, marks.OPTIMIZER_LEAVE),
    "the same, by a subclass that calls its parent's step": (
        (UPDATE[0], *UPDATE, UPDATE[1]),
        marks.OPTIMIZER_LEAVE,
    ),
    "no optimizer": ((*FETCH, *BACKWARD), marks.FETCH_ENTER),
    "backward alone": (BACKWARD, marks.BACKWARD_ENTER),
    "inference": (FETCH, marks.FETCH_ENTER),
    "named by the program": ((*FETCH, *BACKWARD, *UPDATE, marks.STEP), marks.STEP),
}


@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_has_one_end_a_step(name: str) -> None:
    step, end = LOOPS[name]
    ends = StepEnds(set(step))
    for kind in step:
        ends.at(kind)
    for _ in range(5):
        found = [kind for kind in step if ends.at(kind)]
        assert found == [end]
