"""The kinds of mark.

A mark is a boundary on the training thread. Its number is part of the wire (the state page shows
the last one), so numbers are never reused.
"""

from typing import Final

MOST_BEHIND_ONE: Final = 64
"""Optimizers that step behind one backward: more updates are a replayed graph's, each a step."""
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
"""`probe.step()`: a step ends here by the user's word."""
COMPILE_ENTER: Final = 14
COMPILE_LEAVE: Final = 15
CHECKPOINT_ENTER: Final = 16
CHECKPOINT_LEAVE: Final = 17
LOADER: Final = 18
"""What a loader looks like, before the first fetch of each of its iterators."""
READY: Final = 19
"""How many batches lie ready, before a fetch while somebody watches."""
TRAINING_OVER: Final = 21
"""The training thread has ended, and the process lives on."""

ENDED: Final = 22
"""The probe leaves: the program ends, or has uninstalled it."""

STAMPED: Final = 23
"""A device's event stands behind the mark before; the detail is the event's number."""
BATCH: Final = 24
"""The batch of the fetch before was looked at; the detail leads to what was seen."""

RING: Final = 32_768
"""Marks that the state page keeps: some 5,400 plain steps."""
MARK_BYTES: Final = 8 + 8
"""Of a mark on the page and on the wire, in two columns: perf_counter_ns, and its word."""
NO_DETAIL: Final = -1


def word_of(kind: int, detail: int = NO_DETAIL) -> int:
    """A mark's kind and detail as one integer: below zero, so that it is no time. A word of a kind
    alone is the negated kind, and its lowest byte depends on the kind alone."""
    return -((detail + 1) << 8 | kind)


def kind_and_detail(word: int) -> tuple[int, int]:
    """The inverse of `word_of`; (0, -1) for the 0 of a mark that was lost."""
    return -word & 0xFF, (-word >> 8) - 1


ASIDES: Final = frozenset({LOADER, READY, STAMPED, BATCH})
"""Marks that describe something and bound nothing."""
