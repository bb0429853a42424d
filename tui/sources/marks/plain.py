"""Runs of the plainest step there is: fetch, forward, backward, optimizer, and the next fetch.

Nearly every step of nearly every loop is one. Going through the state machine mark by mark costs
the publisher 7 us a step and more, with the interpreter lock held. A run of them is taken column by
column instead, which happens in C.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from operator import add, sub
from typing import Any, Final, NamedTuple

from ....probe.wire import marks
from ...steps import Step

Mark = tuple[int, int, int, Any]
"""(running number, kind, perf_counter_ns, detail)."""

_BODY: Final = (
    marks.FETCH_LEAVE,
    marks.BACKWARD_ENTER,
    marks.BACKWARD_LEAVE,
    marks.OPTIMIZER_ENTER,
    marks.OPTIMIZER_LEAVE,
)
_PLAIN: Final = (*_BODY, marks.FETCH_ENTER)
_PLAIN_WITH_READY: Final = (*_BODY, marks.READY, marks.FETCH_ENTER)
"""Kinds of the marks from behind a step's first up to the next step's."""
FEWEST_MARKS: Final = len(_PLAIN)
"""Of a plain step."""
_NO_PHASES: Final[dict[str, int]] = {}


class MarkColumns(NamedTuple):
    """Some marks, each part of theirs by itself."""

    numbers: tuple[int, ...]
    kinds: tuple[int, ...]
    times_ns: tuple[int, ...]
    details: tuple[Any, ...]


def columns_of(some: Sequence[Mark]) -> MarkColumns:
    """At least one mark, by columns."""
    return MarkColumns(*zip(*some, strict=True))


class PlainRun(NamedTuple):
    """Plain steps in a row; an entry of a column is a step's."""

    marks: int
    """From behind the first one of the first step to the first one of the step after the last."""
    started_ns: Sequence[int]
    fetched_ns: Sequence[int]
    backward_ns: Sequence[int]
    after_ns: Sequence[int]
    """The backward ended."""
    optimizer_ns: Sequence[int]
    stepped_ns: Sequence[int]
    ended_ns: Sequence[int]
    ready: Sequence[int | None]
    """Batches that lay ready as the next step began."""

    @property
    def steps(self) -> int:
        """How many."""
        return len(self.ended_ns)

    def rows(
        self, before: int, ready: int | None, samples: int | None, a_row: int
    ) -> Iterable[Step]:
        """The steps, of which `before` came before, the first with `ready` batches lying there and
        each with so many samples. `a_row` of them in a row make one, as `merging` does it."""
        wait_ns = list(map(sub, self.fetched_ns, self.started_ns))
        parts_ns = [
            wait_ns,
            list(map(sub, self.backward_ns, self.fetched_ns)),
            list(map(sub, self.after_ns, self.backward_ns)),
            list(map(sub, self.stepped_ns, self.optimizer_ns)),
            list(
                map(
                    add,
                    map(sub, self.optimizer_ns, self.after_ns),
                    map(sub, self.ended_ns, self.stepped_ns),
                )
            ),
        ]
        longest_ns, counts = wait_ns, [1] * self.steps
        if a_row > 1:
            starts = range(0, self.steps, a_row)
            parts_ns = [[sum(ns[at : at + a_row]) for at in starts] for ns in parts_ns]
            longest_ns = [max(wait_ns[at : at + a_row]) for at in starts]
            counts = [min(a_row, self.steps - at) for at in starts]
        started_ns = self.started_ns[::a_row]
        ended_ns = (*started_ns[1:], self.ended_ns[-1])
        waiting_ns, forward_ns, backward_ns, optimizer_ns, other_ns = parts_ns
        nothing = repeat(0)
        return map(
            Step,
            [before + count for count in accumulate(counts)],
            counts,
            started_ns,
            ended_ns,
            waiting_ns,
            nothing,
            forward_ns,
            backward_ns,
            optimizer_ns,
            other_ns,
            nothing,
            nothing,
            nothing,
            repeat(_NO_PHASES),
            counts,
            counts,
            counts,
            repeat(None) if samples is None else [samples * count for count in counts],
            (ready, *self.ready[:-1])[::a_row],
            longest_ns,
            repeat(False),
        )


def plain_run(
    some: MarkColumns, at: int, number: int, started_ns: int, iterator: int, end: int | None
) -> PlainRun | None:
    """The plain steps from mark `at` on, which leaves the fetch, from that iterator, with which the
    first began; None where there is none.

    Its number has to be `number`. No mark of them has number `end` or a later one.
    """
    kinds = some.kinds
    with_ready = kinds[at + FEWEST_MARKS - 1 : at + FEWEST_MARKS] == (marks.READY,)
    shape = _PLAIN_WITH_READY if with_ready else _PLAIN
    size = len(shape)
    steps = (len(kinds) - at) // size
    if end is not None:
        steps = min(steps, (end - number) // size)
    if steps <= 0 or kinds[at : at + size] != shape:
        return None
    steps = min(
        _alike(kinds[at : at + steps * size], shape * steps) // size,
        _alike(some.details[at : at + steps * size : size], (None,) * steps),
        _alike(some.details[at + size - 1 : at + steps * size : size], (iterator,) * steps),
    )
    stop = at + steps * size
    times_ns = (started_ns, *some.times_ns[at:stop])
    if some.numbers[at:stop] != tuple(range(number, number + stop - at)):
        return None  # some are lost; a loop that loses marks loses thousands
    if not steps or times_ns != tuple(sorted(times_ns)):
        return None  # the clock has jumped back: a process that was restored on another machine
    return PlainRun(
        stop - at,
        times_ns[0:-1:size],
        times_ns[1::size],
        times_ns[2::size],
        times_ns[3::size],
        times_ns[4::size],
        times_ns[5::size],
        times_ns[size::size],
        some.details[at + FEWEST_MARKS - 1 : stop : size] if with_ready else (None,) * steps,
    )


def _alike(some: Sequence[object], shape: Sequence[object]) -> int:
    """How far both are the same; they are of one length."""
    if some == shape:
        return len(some)
    return next(at for at, pair in enumerate(zip(some, shape, strict=True)) if pair[0] != pair[1])
