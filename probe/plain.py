"""The plainest step there is: fetch, forward, backward, optimizer, and the next fetch.

Nearly every step of nearly every loop is one. Going through the state machine mark by mark costs
the publisher 7 us a step, with the interpreter lock held; this costs 2.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from probe.recorder import Mark
from probe.wire import marks
from probe.wire.messages import Step

_REST: Final = (
    marks.FETCH_LEAVE,
    marks.BACKWARD_ENTER,
    marks.BACKWARD_LEAVE,
    marks.OPTIMIZER_ENTER,
    marks.OPTIMIZER_LEAVE,
)


class Plain(NamedTuple):
    """A plain step from behind its first mark to the first mark of the next."""

    first: int
    """Numbers of its marks, all there."""
    last: int
    fetched_ns: int
    backward_ns: int
    after_ns: int
    """Its backward ended."""
    optimizer_ns: int
    stepped_ns: int
    end_ns: int
    ready: int | None
    """Batches that lay ready for the next step."""

    def step(self, number: int, started_ns: int, ready: int | None, samples: int | None) -> Step:
        """The step, which began at `started_ns` with its fetch."""
        _, _, fetched_ns, backward_ns, after_ns, optimizer_ns, stepped_ns, end_ns, _ = self
        wait_ns = fetched_ns - started_ns
        return Step(
            number,
            1,
            started_ns,
            end_ns,
            wait_ns,
            0,
            backward_ns - fetched_ns,
            after_ns - backward_ns,
            stepped_ns - optimizer_ns,
            optimizer_ns - after_ns + end_ns - stepped_ns,
            0,
            0,
            0,
            {},
            1,
            1,
            1,
            samples,
            ready,
            wait_ns,
            False,
        )


def plain_step(some: Sequence[Mark], at: int, iterator: int) -> Plain | None:
    """The plain step whose fetch, from that iterator, is left at `some[at]`; None for any other."""
    part = some[at : at + 7]
    if len(part) < 6:
        return None
    (
        (first, left, fetched_ns, seen),
        (_, kind_2, backward_ns, _),
        (_, kind_3, after_ns, _),
        (_, kind_4, optimizer_ns, _),
        (_, kind_5, stepped_ns, _),
        (last, kind, end_ns, detail),
    ) = part[:6]
    if seen is not None or (left, kind_2, kind_3, kind_4, kind_5) != _REST:
        return None
    ready, marked = None, 6
    if kind == marks.READY and len(part) == 7:
        ready, marked = detail, 7
        last, kind, end_ns, detail = part[6]
    if kind != marks.FETCH_ENTER or detail != iterator or last != first + marked - 1:
        return None
    if not fetched_ns <= backward_ns <= after_ns <= optimizer_ns <= stepped_ns <= end_ns:
        return None  # the clock has jumped back: a process that was restored on another machine
    return Plain(
        first, last, fetched_ns, backward_ns, after_ns, optimizer_ns, stepped_ns, end_ns, ready
    )
