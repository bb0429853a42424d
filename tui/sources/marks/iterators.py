"""Which iterators feed training and which an evaluation, by what follows their batches."""

from dataclasses import dataclass, field
from typing import Final

from .open_step import DATA, EVALUATION, OTHER, PHASE_NAMES, STARTUP, OpenStep

COMPUTED_NS: Final = 50_000
"""Between two batches of an evaluation a net answers: five operations, of 10 us each to call.
Batches that are kept for later have a few us between them."""
REMEMBERED: Final = 64
"""Iterators kept in mind; more are alive at once in no loop we know."""
MORE_BESIDE: Final = 2
"""So many batches more than any other brought beside the training's own in the step before, and it
is an evaluation's: of a second loader the training may take one more in some steps."""


@dataclass(slots=True)
class _Pending:
    """Since the last backward, of an iterator that is not known to train."""

    ns: list[int] = field(default_factory=lambda: [0] * len(PHASE_NAMES))
    """Its time by phase."""
    making_ns: int = 0
    """Of its start-up what came before the first fetch: workers are started then."""
    forked: bool = False
    """It has started workers."""
    fetches: int = 0
    samples: int = 0


class Iterators:
    """What has been seen of each iterator since the last backward.

    An iterator that is exhausted with no backward since its first batch was an evaluation's:
    what was booked as waiting, start-up or other moves to evaluation then. So does that of one
    which was left early, where the step before shows that the training goes without it. One fetched
    from with gradients off is an evaluation's at once, unless it has fed a backward (a prefetcher
    that fetches under `no_grad`).
    """

    def __init__(self) -> None:
        self._pending: dict[int, _Pending] = {}
        self._fresh: set[int] = set()
        self._trained: set[int] = set()
        """With 0 where backwards came before any fetch: the training has no loader."""
        self._without_grad: set[int] = set()
        """Those that were first fetched from with gradients off."""
        self._samples: dict[int, int] = {}
        """In a batch of each, where one was looked at."""
        self.current = 0
        """The iterator fetched from last."""
        self._fed = 0
        """The last to be fetched from, since the last backward, of those that train; 0: none."""
        self._beside: dict[int, int] = {}
        """Batches that came before a backward of the open step, and that it was not of."""
        self._beside_before: dict[int, int] | None = None
        """The same of the step before; None before the second."""

    def started(self, iterator: int, step: OpenStep) -> bool:
        """An iterator was made or reset: its first fetch is start-up. True when the one before, at
        the same address, was an evaluation's that was left early, whose time then moves."""
        if was_left := self._was_left_early(iterator):
            self._pass_over(iterator)
            self._evaluation(step, self._pending.pop(iterator))
        if len(self._fresh) >= REMEMBERED:
            self._fresh.clear()
        self._fresh.add(iterator)
        self._trained.discard(iterator)
        return was_left

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

    def saw(self, iterator: int, samples: int | None) -> None:
        """A batch of it has so many samples, if any."""
        if samples is None:
            return
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

    def fetched(self, step: OpenStep, phase: int, ns: int, samples: int | None) -> None:
        """A batch of the current iterator came, after so long in that phase."""
        step.fetched(ns if phase == DATA else 0, samples)
        if self.current in self._trained:
            self._fed = self.current
            return
        pending = self._pending_of(self.current)
        pending.ns[phase] += ns
        pending.fetches += 1
        pending.samples += samples or 0

    def add_time(self, phase: int, ns: int) -> None:
        """Remember that `ns` of a phase belongs to the current iterator."""
        if self.current not in self._trained:
            self._pending_of(self.current).ns[phase] += ns

    def backward(self, step: OpenStep) -> list[int]:
        """A backward: the current iterator trains, and nothing is pending any more. Returns those
        that were an evaluation's and were left early, whose time moves now."""
        left = [one for one in self._pending if self._was_left_early(one)]
        if self.current in left:
            if self._fed in self._trained:
                self.current = self._fed  # the backward is of a batch that came before
            else:
                left.remove(self.current)
        for one in self._pending:
            if one != self.current:
                self._pass_over(one)
        for one in left:
            self._evaluation(step, self._pending[one])
        if self.current not in self._trained:
            if len(self._trained) >= REMEMBERED:
                self._trained.clear()
            self._trained.add(self.current)
        if self.current and self.current not in left:
            self._trained.discard(0)  # the training has a loader
        self._pending.clear()
        self._fed = 0
        return left

    def step_ended(self, is_whole: bool) -> None:
        """A step ended; `is_whole`: all of it was seen, with a backward."""
        if is_whole:
            self._beside_before = self._beside
        self._beside = {}

    def trained_alone(self) -> None:
        """Whole steps have passed, all with batches of the current iterator alone."""
        self._beside, self._beside_before, self._fed = {}, {}, 0

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
        self._evaluation(step, pending)
        return True

    def _was_left_early(self, iterator: int) -> bool:
        """Whether it is an evaluation's: no step needs its batches, the one before went without."""
        pending, before = self._pending.get(iterator), self._beside_before
        if pending is None or before is None or iterator in before:
            return False
        if pending.ns[OTHER] < COMPUTED_NS * pending.fetches:
            return False  # taken ahead: a replay's, a prefetcher's, a micro-batch's
        return pending.fetches >= MORE_BESIDE + max(before.values(), default=0)

    def _pass_over(self, iterator: int) -> None:
        """A backward comes, or another iterator in its place, that is not of its batches."""
        if len(self._beside) >= REMEMBERED:
            self._beside.clear()
        if fetches := self._pending[iterator].fetches:
            self._beside[iterator] = max(fetches, self._beside.get(iterator, 0))

    def _pending_of(self, iterator: int) -> _Pending:
        if len(self._pending) >= REMEMBERED:
            self._pending.clear()
        pending = self._pending.get(iterator)
        if pending is None:
            pending = self._pending[iterator] = _Pending()
        return pending

    @classmethod
    def _evaluation(cls, step: OpenStep, pending: _Pending) -> None:
        """What is pending was an evaluation's, with the batches that the step has counted."""
        for phase, pending_ns in enumerate(pending.ns):
            ns = cls._moved(step, phase, pending_ns)
            if phase == STARTUP:
                making_ns = min(pending.making_ns, ns)
                ns -= making_ns  # the rest is its first batch
                step.evaluation_startup_ns += making_ns if pending.forked else 0
            if phase in (DATA, STARTUP):
                step.evaluation_data_ns += ns
        if pending.fetches:
            step.fetched_for_evaluation(pending.fetches, pending.samples)

    @staticmethod
    def _moved(step: OpenStep, phase: int, ns: int) -> int:
        """So much of a phase becomes evaluation, as far as it is in this step; returns how much."""
        moved = min(ns, step.ns[phase])
        step.ns[phase] -= moved
        step.ns[EVALUATION] += moved
        return moved
