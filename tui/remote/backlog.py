"""What an agent has seen and its link has not taken yet, and the last minute of what it has.

A link that is too slow for all of it gets less: consecutive steps as one row, fewer readings of
counters, fewer stacks. What is left out is counted. The backlog never outgrows its bounds.
"""

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..model.observations import (
    ActivitySeen,
    Delivered,
    DumpSeen,
    PageSeen,
    StacksSeen,
)
from ..recording.format import Entry, Looked
from ..recording.tape import rows_of
from ..sources.marks.merging import merge_gpu_steps, merge_steps

KEEP_NS: Final = 60_000_000_000
"""Of what was sent, so much is kept for a link that was lost and comes back."""
LATE_NS: Final = 4_000_000_000
"""Where what waits is older than this, the link is too slow for it."""
MOST_ROWS: Final = 30_000
"""Some 30 MB; a minute of the fastest loop, whose rows the probe has merged."""
ROWS_A_FRAME: Final = 2_000
THIN_AGAIN: Final = 2_000
"""Entries between two thinnings of a full backlog: each goes through all of it."""
SPARSE_NS: Final = 2_000_000_000
"""Between two of the stacks, pages and counter readings that a slow link still gets."""


class Numbered(NamedTuple):
    """An entry and its place in the run: 1 is the first."""

    number: int
    entry: Entry


class Frameful(NamedTuple):
    """What goes into the next frame."""

    entries: list[Entry]
    last: int
    """Number of the last entry so far, also where none is new."""


class Backlog:
    """Taken from on one thread and filled from another."""

    def __init__(self, kinds: Iterable[str] = ()) -> None:
        self._kinds = frozenset(kinds)
        self._lock = Lock()
        self._waiting: deque[Numbered] = deque()
        self._sent: deque[Numbered] = deque()
        self._rows = 0
        """Of both."""
        self._number = 0
        self._last_sent = 0
        self._caught_up = 0
        """Entries up to this number may be late: the link was away."""
        self._thin_again = 0
        """A full backlog is not thinned before there is an entry of this number."""
        self.left_out = 0
        """Rows that a slow link did not get, in whole or in part."""

    def take(self, entry: Entry) -> None:
        """The next entry. The near side judges by itself: when the agent did is not sent."""
        tag = str(entry.__struct_config__.tag)
        if isinstance(entry, Looked) or (self._kinds and tag not in self._kinds):
            return
        with self._lock:
            self._number += 1
            self._waiting.append(Numbered(self._number, entry))
            self._rows += rows_of(entry)
            self._forget(entry.t_ns)

    def next(self) -> Frameful:
        """What to send now, at most some rows of it."""
        with self._lock:
            self._thin_if_late()
            entries: list[Entry] = []
            rows = 0
            while self._waiting and rows < ROWS_A_FRAME:
                one = self._waiting.popleft()
                self._sent.append(one)
                self._last_sent = one.number
                entries.append(one.entry)
                rows += rows_of(one.entry)
            return Frameful(entries, self._last_sent)

    @property
    def is_empty(self) -> bool:
        """Nothing waits."""
        return not self._waiting

    @property
    def rows(self) -> int:
        """How much is held, sent or not."""
        return self._rows

    def resume_after(self, number: int) -> None:
        """A link has come back that has the entries up to this one: what is kept of the others
        waits again, and may be late."""
        with self._lock:
            again = [one for one in self._sent if one.number > number]
            self._sent = deque(one for one in self._sent if one.number <= number)
            self._waiting.extendleft(reversed(again))
            self._caught_up = self._number

    def _thin_if_late(self) -> None:
        if not self._waiting or self._waiting[0].number <= self._caught_up:
            return
        if self._waiting[-1].entry.t_ns - self._waiting[0].entry.t_ns <= LATE_NS:
            return
        before = sum(rows_of(one.entry) for one in self._waiting)
        thin = thinned(self._waiting)
        after = sum(rows_of(one.entry) for one in thin)
        self._rows -= before - after
        self.left_out += before - after
        self._waiting = deque(thin)

    def _forget(self, now_ns: int) -> None:
        """What is too old or too much: first of what was sent."""
        while self._sent and (
            self._sent[0].entry.t_ns < now_ns - KEEP_NS or self._rows > MOST_ROWS
        ):
            self._rows -= rows_of(self._sent.popleft().entry)
        if self._rows > MOST_ROWS and self._number >= self._thin_again:
            self._thin_again = self._number + THIN_AGAIN
            self._caught_up = 0
            self._thin_if_late()
        while len(self._waiting) > 1 and (
            self._rows > MOST_ROWS or self._waiting[0].entry.t_ns < now_ns - 2 * KEEP_NS
        ):
            rows = rows_of(self._waiting.popleft().entry)
            self._rows -= rows
            self.left_out += rows


def thinned(waiting: Iterable[Numbered]) -> list[Numbered]:
    """Less of it. Sums over steps stay exact, and nothing that comes once is left out."""
    kept: list[Numbered] = []
    last_ns: dict[type[Entry], int] = {}
    for number, entry in waiting:
        if isinstance(entry, ActivitySeen | StacksSeen | PageSeen | DumpSeen):
            before_ns = last_ns.get(type(entry))
            if before_ns is not None and entry.t_ns - before_ns < SPARSE_NS:
                continue
            last_ns[type(entry)] = entry.t_ns
        kept.append(Numbered(number, _with_few_rows(entry)))
    return kept


def _with_few_rows(entry: Entry) -> Entry:
    if not isinstance(entry, Delivered):
        return entry
    batch = entry.batch
    steps = merge_steps(batch.steps, 1)
    gpu_steps = merge_gpu_steps(batch.gpu_steps, 1)
    return replace(entry, batch=replace(batch, steps=steps, gpu_steps=gpu_steps))
