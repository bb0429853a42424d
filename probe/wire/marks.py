"""The kinds of mark, and the phase that is open after each of them.

A mark is a boundary on the training thread. Its number is part of the wire (the state page shows
the last one), so numbers are never reused.
"""

from typing import Final

ITERATION: Final = 1
"""A loader's iterator is being made or reset: worker start-up begins."""
FETCH_ENTER: Final = 2
FETCH_LEAVE: Final = 3
FETCH_END: Final = 4
"""The iterator was exhausted (StopIteration)."""
FETCH_FAILED: Final = 5
BACKWARD_ENTER: Final = 6
BACKWARD_LEAVE: Final = 7
OPTIMIZER_ENTER: Final = 8
OPTIMIZER_LEAVE: Final = 9
OPTIMIZER_INSIDE: Final = 10
"""An optimizer stepped inside a backward, perhaps on an autograd thread: counted, no phase."""
PHASE_ENTER: Final = 11
PHASE_LEAVE: Final = 12
STEP: Final = 13
"""`probe.step()`: the user says where a step ends."""
COMPILE_ENTER: Final = 14
COMPILE_LEAVE: Final = 15
CHECKPOINT_ENTER: Final = 16
CHECKPOINT_LEAVE: Final = 17
LOADER: Final = 18
"""What a loader looks like, told before the first fetch of each of its iterators."""
READY: Final = 19
"""How many batches lie ready, told before a fetch while somebody watches."""
RESTED: Final = 20
"""The hooks have rested (nobody watches, and the steps are short) and begin to mark again."""
TRAINER_GONE: Final = 21
"""The training thread has ended, and the process lives on."""

ASIDES: Final = frozenset({LOADER, READY})
"""Marks that tell something and bound nothing."""

OPEN_PHASE: Final[dict[int, str]] = {
    0: "starting",
    ITERATION: "loader start-up",
    FETCH_ENTER: "data",
    FETCH_LEAVE: "forward",
    FETCH_END: "other",
    FETCH_FAILED: "other",
    BACKWARD_ENTER: "backward",
    BACKWARD_LEAVE: "other",
    OPTIMIZER_ENTER: "optimizer",
    OPTIMIZER_LEAVE: "other",
    OPTIMIZER_INSIDE: "backward",
    PHASE_ENTER: "phase",
    PHASE_LEAVE: "other",
    STEP: "other",
    COMPILE_ENTER: "compile",
    COMPILE_LEAVE: "forward",
    CHECKPOINT_ENTER: "checkpoint",
    CHECKPOINT_LEAVE: "other",
    LOADER: "loader start-up",
    READY: "data",
    RESTED: "not known",
    TRAINER_GONE: "training over",
}
"""What the training thread is doing, judged from its last mark alone."""
