"""Which iterators feed training and which an evaluation, by what follows their batches."""

from dataclasses import dataclass, field
from typing import Final

from .open_step import EVALUATION, PHASE_NAMES, STARTUP, OpenStep

REMEMBERED: Final = 64
"""Iterators kept in mind; more are alive at once in no loop we know."""


@dataclass(slots=True)
class _Pending:
    """Since the last backward, of an iterator that is not known to train."""

    ns: list[int] = field(default_factory=lambda: [0] * len(PHASE_NAMES))
    """Its time by phase."""
    making_ns: int = 0
    """Of its start-up what came before the first fetch: workers are started then."""
    forked: bool = False
    """It has started workers."""


class Iterators:
    """What has been seen of each iterator since the last backward.

    An iterator that is exhausted with no backward since its first batch was an evaluation's:
    what was booked as waiting, start-up or other moves to evaluation then. One fetched from with
    gradients off is an evaluation's at once, unless it has fed a backward (a prefetcher that
    fetches under `no_grad`).
    """

    def __init__(self) -> None:
        self._pending: dict[int, _Pending] = {}
        self._fresh: set[int] = set()
        self._trained: set[int] = set()
        self._without_grad: set[int] = set()
        """Those that were first fetched from with gradients off."""
        self._samples: dict[int, int] = {}
        """In a batch of each, where one was looked at."""
        self.current = 0
        """The iterator fetched from last."""

    def started(self, iterator: int) -> None:
        """An iterator was made or reset: its first fetch is start-up."""
        if len(self._fresh) >= REMEMBERED:
            self._fresh.clear()
        self._fresh.add(iterator)
        self._trained.discard(iterator)

    def made_unseen(self, iterator: int) -> None:
        """An iterator was made or reset within what the user has named: whom it served is over."""
        self._trained.discard(iterator)

    def described(self, iterator: int, grad: bool) -> None:
        """The loader of an iterator is known now; `grad`: gradients were on as it was made."""
        self._samples.pop(iterator, None)
        if len(self._without_grad) >= REMEMBERED:
            self._without_grad.clear()
        if grad:
            self._without_grad.discard(iterator)
        else:
            self._without_grad.add(iterator)

    def needs_grad(self, iterator: int) -> bool:
        """Whether gradients were on when it was first fetched from, or nobody knows."""
        return iterator not in self._without_grad

    def saw(self, iterator: int, samples: int) -> None:
        """A batch of it has so many samples."""
        if len(self._samples) >= REMEMBERED:
            self._samples.clear()
        self._samples[iterator] = samples

    def samples_of(self, iterator: int) -> int | None:
        """Samples in a batch of it; None where none was looked at."""
        return self._samples.get(iterator)

    def trains(self, iterator: int) -> bool:
        """Whether a backward has followed a batch of it."""
        return iterator in self._trained

    def only_trains(self) -> bool:
        """Whether nothing can be learnt of the current iterator: it has fed a backward, and no time
        waits for one to come."""
        return (
            self.current in self._trained and self.current not in self._fresh and not self._pending
        )

    def is_first_fetch(self, iterator: int) -> bool:
        """Whether this fetch is the iterator's first; asked once for each fetch."""
        if iterator in self._fresh:
            self._fresh.discard(iterator)
            return True
        return False

    def made(self, iterator: int, ns: int, forked: bool = False) -> None:
        """To make it took so long, as far as it is known now; `forked`: it started workers then."""
        if iterator in self._trained:
            return
        pending = self._pending_of(iterator)
        pending.ns[STARTUP] += ns
        pending.making_ns += ns
        pending.forked = pending.forked or forked

    def add_time(self, phase: int, ns: int) -> None:
        """Remember that `ns` of a phase belongs to the current iterator."""
        if self.current not in self._trained:
            self._pending_of(self.current).ns[phase] += ns

    def backward(self) -> None:
        """A backward: the current iterator trains, and nothing is pending any more."""
        if self.current not in self._trained:
            if len(self._trained) >= REMEMBERED:
                self._trained.clear()
            self._trained.add(self.current)
        self._pending.clear()

    def evaluates(self, step: OpenStep) -> None:
        """The current iterator is an evaluation's, whether it is ever exhausted or not: to make it,
        and to start its workers, is the evaluation's."""
        pending = self._pending.get(self.current)
        if pending is not None:
            ns = self._moved(step, STARTUP, pending.ns[STARTUP])
            step.evaluation_startup_ns += ns if pending.forked else 0
            pending.ns[STARTUP] = pending.making_ns = 0
            pending.forked = False

    def exhausted(self, step: OpenStep) -> bool:
        """The current iterator ended; True when it was an evaluation's, whose time then moves."""
        pending = self._pending.pop(self.current, None)
        self._fresh.discard(self.current)
        if pending is None or self.current in self._trained:
            self._trained.discard(self.current)
            return False
        for phase, pending_ns in enumerate(pending.ns):
            ns = self._moved(step, phase, pending_ns)
            if phase == STARTUP and pending.forked:
                step.evaluation_startup_ns += min(pending.making_ns, ns)
        return True

    def _pending_of(self, iterator: int) -> _Pending:
        if len(self._pending) >= REMEMBERED:
            self._pending.clear()
        pending = self._pending.get(iterator)
        if pending is None:
            pending = self._pending[iterator] = _Pending()
        return pending

    @staticmethod
    def _moved(step: OpenStep, phase: int, ns: int) -> int:
        """So much of a phase becomes evaluation, as far as it is in this step; returns how much."""
        moved = min(ns, step.ns[phase])
        step.ns[phase] -= moved
        step.ns[EVALUATION] += moved
        return moved
