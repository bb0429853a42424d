"""Marks become steps: the state machine that gives every nanosecond to one phase.

The time between two marks is known by both of them, so a gap is booked when its second mark comes:
before a backward it was forward, between a backward and an optimizer it was other. So closures,
accumulation, GANs and LBFGS need no case of their own (tests/unit/probe/test_loops.py has them).
"""

from collections.abc import Callable, Sequence
from typing import Any

from ....probe.wire import marks
from ...messages import BatchSeen
from ...steps import Open, Step
from .boundary import BEFORE_FORWARD, Boundary
from .iterators import Iterators
from .ledger import Ledger
from .loaders import DescribedLoaders, Description
from .open_step import BACKWARD, DATA, EVALUATION, FORWARD, OPTIMIZER, OTHER, STARTUP, OpenStep
from .overlays import NAMED_PHASES, OVERLAY_BEGINS, OVERLAY_ENDS, SAVES, Name, Overlays
from .plain import Mark, MarkColumns, columns_of, plain_run


class Timeline:
    """Fed with marks in order, it returns the steps they complete. One owner, no lock."""

    def __init__(self) -> None:
        self.steps = 0
        """Completed since the start."""
        self.lost_marks = 0
        self.loaders = DescribedLoaders()
        self.ledger = Ledger()
        """The same steps on the device's clock."""
        self._expected: int | None = None
        """Number of the mark expected next; None before the first."""
        self._number = 0
        """Of the mark that is being taken."""
        self._step = OpenStep(0)
        self._kind = 0
        """The last mark that bounded an interval; 0 before the first."""
        self._since_ns, self._last = 0, (0, 0)
        self._boundary = Boundary()
        self._overlays = Overlays()
        self._iterators = Iterators()
        self._fetch_depth = self._backward_depth = self._optimizer_depth = 0
        self._evaluating = False
        self._begun = 0
        """The iterator whose beginning was marked last."""
        self._spoiled = False
        """Marks were lost inside the open step: it is not reported."""
        self._described: Description | None = None
        self._ready: int | None = None
        self._done: list[Step] = []
        self.unknown = 0
        """Marks of a kind that a newer probe has."""
        self._bounds: dict[int, Callable[[int, Any], None]] = {
            marks.ITERATION: self._iteration,
            marks.FETCH_ENTER: self._fetch_enter,
            marks.FETCH_LEAVE: self._fetch_leave,
            marks.FETCH_END: self._fetch_end,
            marks.FETCH_FAILED: self._fetch_failed,
            marks.BACKWARD_ENTER: self._backward_enter,
            marks.BACKWARD_LEAVE: self._backward_leave,
            marks.OPTIMIZER_ENTER: self._optimizer_enter,
            marks.OPTIMIZER_LEAVE: self._optimizer_leave,
            marks.OPTIMIZER_INSIDE: self._optimizer_inside,
            marks.STEP: self._user_step,
            marks.TRAINING_OVER: self._training_over,
            marks.ENDED: self._training_over,
        }
        self._asides: dict[int, Callable[[int, Any], None]] = {
            marks.LOADER: self._loader,
            marks.READY: self._batches_ready,
            marks.PHASE_ENTER: lambda t_ns, name: self._enter(NAMED_PHASES.get(name, name), t_ns),
            marks.PHASE_LEAVE: lambda t_ns, name: self._leave(NAMED_PHASES.get(name, name), t_ns),
            **dict.fromkeys((*OVERLAY_BEGINS, *OVERLAY_ENDS), self._overlay),
        }

    def feed(self, mark: Mark) -> list[Step]:
        """Take one mark; returns the steps that it completed, usually none."""
        self._number, kind, t_ns, detail = mark
        if self._number != self._expected or t_ns < self._last[1]:
            self._resume(self._number, t_ns)
        self._expected = self._number + 1
        self._last = (kind, t_ns)
        if (aside := self._asides.get(kind)) is not None:
            aside(t_ns, detail)
        elif (bound := self._bounds.get(kind)) is None:
            self.unknown += 1
        elif not self._overlays:
            bound(t_ns, detail)
        elif not self._overlays.absorbing:
            self._overlays.passed()
            bound(t_ns, detail)
        elif (left := self._overlays.absorb(kind, detail, self._iterators)) is not None:
            self._leave(left, t_ns)
        if not self._done:
            return []
        done, self._done = self._done, []
        return done

    def feed_all(self, some: Sequence[Mark], a_row: int = 1) -> list[Step]:
        """Take marks in order; returns the steps that they complete. As `feed` with each of them,
        at a sixth of the cost while the loop is of the plainest: then so many steps make a row."""
        done: list[Step] = []
        columns: MarkColumns | None = None
        at = 0
        while at < len(some):
            if self._kind == marks.FETCH_ENTER and self._is_plain():
                columns = columns or columns_of(some)
                at += self._take_plain(columns, at, done, a_row)
            if at < len(some):
                done += self.feed(some[at])
                at += 1
        return done

    def joins(self, steps: int) -> None:
        """The marks to come begin within a step, after so many."""
        self.steps = steps
        self._spoiled = True

    @property
    def unended(self) -> int:
        """Phases of the user's that were given up, since they do not end."""
        return self._overlays.unended

    def open(self) -> Open:
        """The step that is running."""
        kind, t_ns = self._last
        return self._step.so_far(kind, t_ns, self._overlays.user_phase, self._evaluating)

    # -- whole steps at once -----------------------------------------------------------------

    def _is_plain(self) -> bool:
        """A step has just begun with its fetch, and nothing is open or to be learnt."""
        return (
            (self._fetch_depth, self._backward_depth) == (1, 0)
            and self._since_ns == self._step.started_ns
            and not self._spoiled
            and not self._overlays
            and not self._overlays.taken_ns
            and not self._evaluating
            and not self.ledger.sampling
            and self._iterators.only_trains()
            and self._boundary.is_plain()
        )

    def _take_plain(self, some: MarkColumns, at: int, done: list[Step], a_row: int) -> int:
        """Complete plain steps from mark `at`, behind their first one; returns how many marks."""
        iterator, number = self._iterators.current, self._number + 1
        run = plain_run(some, at, number, self._since_ns, iterator, self.ledger.unsampled_before())
        if run is None:
            return 0
        done += run.rows(self.steps, self._step.ready, self._samples_of(iterator), a_row)
        end_ns = run.ended_ns[-1]
        self.steps += run.steps
        self._number += run.marks
        self._expected, self._last = self._number + 1, (marks.FETCH_ENTER, end_ns)
        self._since_ns, self._step = end_ns, OpenStep(end_ns)
        self._step.ready = run.ready[-1]
        self._iterators.trained_alone()
        self.loaders.fetched(iterator, run.steps)
        self.loaders.serves(iterator, evaluation=False)
        return run.marks

    # -- intervals ---------------------------------------------------------------------------

    def _close(self, phase: int, t_ns: int, kind: int) -> int:
        """Give the interval that ends now to a phase, less what overlays took; returns its ns."""
        ns = max(0, t_ns - self._since_ns - self._overlays.taken_ns)
        self._overlays.taken_ns = 0
        self._step.ns[phase] += ns
        self.ledger.close(self._number, t_ns, phase)
        self._since_ns = t_ns
        self._kind = kind
        return ns

    def _end_step(self, count: int = 1) -> None:
        """The open step ended where its last interval was closed."""
        self.steps += count
        if not self._spoiled:
            inference = not self._boundary.trained
            self._done.append(self._step.closed(self.steps, count, self._since_ns, inference))
        step = None if self._spoiled else self._step
        self.ledger.end(step, self.steps, count, self._since_ns)
        self._iterators.step_ended(step is not None and self._step.backwards > 0)
        self._spoiled = False
        self._step = OpenStep(self._since_ns)

    # -- fetches -----------------------------------------------------------------------------

    def _iteration(self, t_ns: int, iterator: int) -> None:
        gap, ns = OTHER, 0
        if self._fetch_depth == 0:
            gap = self._boundary.gap_before_fetch(self._kind, self._evaluating)
            behind_a_batch = self._kind == marks.FETCH_LEAVE
            ns = self._close(gap, t_ns, marks.ITERATION)
            if gap == OTHER and behind_a_batch:
                self._iterators.add_time(gap, ns)
                self.ledger.belongs(self._iterators.current)
            if count := self._boundary.steps_before_iterator(self._step, t_ns):
                self._end_step(count)  # `iter(loader)` is the first part of its first fetch
        if self._iterators.started(iterator, self._step):
            self._evaluated(iterator)
        if gap == STARTUP and iterator == self._begun:
            # It is marked once more, by itself, when its workers have been started.
            self._iterators.made(iterator, ns, forked=True)
            self.ledger.belongs(iterator)
        self._begun = iterator

    def _fetch_enter(self, t_ns: int, iterator: int) -> None:
        self._fetch_depth += 1
        if self._fetch_depth > 1:
            return  # a wrapped loader's own fetch: the outer one is the wait
        if self._described is not None:
            (row, with_grad), self._described = self._described, None
            self.loaders.iterated(iterator, row)
            self._iterators.described(iterator, with_grad)
        grad = self._iterators.needs_grad(iterator)
        gap = self._boundary.gap_before_fetch(self._kind, self._evaluating)
        ns = self._close(gap, t_ns, marks.FETCH_ENTER)
        if gap == STARTUP:
            self._iterators.made(iterator, ns)
            self.ledger.belongs(iterator)
        elif gap != EVALUATION and not self._step.backwards:
            self._iterators.add_time(gap, ns)
            self.ledger.belongs(self._iterators.current)
        self._optimizer_depth = 0
        if goes_on := not grad and self._iterators.trains(iterator):
            self.loaders.goes_on(iterator)
        trains = goes_on or self.loaders.feeds_training(iterator)
        evaluates = self._boundary.trained and not grad and not trains
        if count := self._boundary.steps_before_fetch(self._step, t_ns, grad, evaluates):
            self._end_step(count)
        self._iterators.current = iterator
        self._evaluating = evaluates
        if evaluates:
            self._iterators.evaluates(self._step)
            self.ledger.evaluates(iterator)
        if self._step.fetches == 0:
            self._step.ready = self._ready
        self._ready = None

    def _fetch_leave(self, t_ns: int, seen: BatchSeen | None) -> None:
        self._fetch_depth = max(0, self._fetch_depth - 1)
        if self._fetch_depth:
            return
        iterator = self._iterators.current
        self.loaders.fetched(iterator)
        if seen is not None:
            self.loaders.seen(iterator, t_ns, seen)
            self._iterators.saw(iterator, self.loaders.samples_in(iterator, seen))
        first = self._iterators.is_first_fetch(iterator)
        phase = EVALUATION if self._evaluating else STARTUP if first else DATA
        ns = self._close(phase, t_ns, marks.FETCH_LEAVE)
        if self._evaluating:
            self.loaders.serves(iterator, evaluation=True)
            self._step.evaluation_data_ns += ns
            return
        self._iterators.fetched(self._step, phase, ns, self._samples_of(iterator))
        self.ledger.belongs(iterator)

    def _samples_of(self, iterator: int) -> int | None:
        size = self._iterators.samples_of(iterator)
        return self.loaders.batch_size(iterator) if size is None else size

    def _fetch_end(self, t_ns: int, _: None) -> None:
        self._fetch_depth = max(0, self._fetch_depth - 1)
        if self._fetch_depth:
            return
        iterator, step = self._iterators.current, self._step
        ns = self._close(EVALUATION if self._evaluating else OTHER, t_ns, marks.FETCH_END)
        if self._evaluating and self.loaders.starts_workers(iterator):
            step.evaluation_startup_ns += ns  # its workers are ended in it
        if self._boundary.trained and self._iterators.exhausted(step):
            self._evaluated(iterator)
        self.loaders.ended(iterator)
        self._evaluating = False

    def _evaluated(self, iterator: int) -> None:
        """Without a backward of its batches: it turned out to be an evaluation's."""
        self.loaders.serves(iterator, evaluation=True)
        self.ledger.evaluates(iterator)

    def _fetch_failed(self, t_ns: int, _: None) -> None:
        self._fetch_depth = max(0, self._fetch_depth - 1)
        if not self._fetch_depth:
            self._close(OTHER, t_ns, marks.FETCH_FAILED)

    # -- backward and optimizer --------------------------------------------------------------

    def _backward_enter(self, t_ns: int, _: None) -> None:
        self._backward_depth += 1
        if self._backward_depth > 1:
            return  # reentrant checkpointing
        if count := self._boundary.steps_before_backward(self._step, t_ns):
            self._end_step(count)
        self._close(FORWARD, t_ns, marks.BACKWARD_ENTER)
        self._boundary.trained = True
        self._fetch_depth = self._optimizer_depth = 0
        self._evaluating = False

    def _backward_leave(self, t_ns: int, _: None) -> None:
        self._backward_depth = max(0, self._backward_depth - 1)
        if self._backward_depth:
            return
        self._close(BACKWARD, t_ns, marks.BACKWARD_LEAVE)
        self._step.backwards += 1
        for iterator in self._iterators.backward(self._step):
            self._evaluated(iterator)
        if not self._iterators.current:
            self._boundary.without_loader()  # another than that of an evaluation, that is
        self.ledger.trains()
        if self._step.fetches:  # else the last that was fetched from may be an evaluation's
            self.loaders.serves(self._iterators.current, evaluation=False)

    def _optimizer_enter(self, t_ns: int, _: None) -> None:
        if self._backward_depth:
            return  # optimizer-in-backward: counted when it leaves, no phase of its own
        self._optimizer_depth += 1
        if self._optimizer_depth > 1:
            return  # a subclass that calls its parent's step
        if count := self._boundary.steps_before_update(self._step):
            self._end_step(count)
        unseen_backward = self._kind in BEFORE_FORWARD and not self._step.backwards
        self._close(FORWARD if unseen_backward else OTHER, t_ns, marks.OPTIMIZER_ENTER)

    def _optimizer_leave(self, t_ns: int, _: None) -> None:
        if self._backward_depth:
            self._optimizer_inside(t_ns, None)
            return
        self._optimizer_depth = max(0, self._optimizer_depth - 1)
        if self._optimizer_depth:
            return
        counted = self._kind == marks.OPTIMIZER_LEAVE  # the outer half of a nested step
        self._close(OPTIMIZER, t_ns, marks.OPTIMIZER_LEAVE)
        self._step.optimized = self._boundary.trained = True
        if not counted:
            self._step.optimizer_steps += 1

    def _optimizer_inside(self, t_ns: int, _: None) -> None:
        self._step.optimized = True
        self._step.optimizer_steps += 1

    def _user_step(self, t_ns: int, _: None) -> None:
        self._boundary.by_user()
        phase = OTHER
        if self._kind == marks.FETCH_LEAVE and not self._step.backwards:
            phase = EVALUATION if self._evaluating else FORWARD
        self._close(phase, t_ns, marks.STEP)
        self._end_step()

    def _training_over(self, t_ns: int, _: None) -> None:
        """No mark will end the last step; what comes next is another thread's, or nothing."""
        if self._boundary.ends_with_the_run(self._step):
            self._end_step()
        self._begin_at(t_ns)
        self._expected = None

    # -- asides and losses -------------------------------------------------------------------

    def _loader(self, _: int, description: Description) -> None:
        self._described = description

    def _batches_ready(self, _: int, ready: int | None) -> None:
        self._ready = ready

    def _overlay(self, t_ns: int, _: None) -> None:
        kind = self._last[0]
        if kind in SAVES and (self._fetch_depth or self._backward_depth):
            return  # a dataset that keeps what it has made: its batches are waited for
        begins = kind in OVERLAY_BEGINS
        move, names = (self._enter, OVERLAY_BEGINS) if begins else (self._leave, OVERLAY_ENDS)
        move(names[kind], t_ns)

    def _enter(self, name: Name, t_ns: int) -> None:
        self.ledger.piece(self._number, t_ns, self._overlays.innermost)
        self._overlays.enter(name, t_ns)

    def _leave(self, name: Name, t_ns: int) -> None:
        self.ledger.piece(self._number, t_ns, self._overlays.innermost)
        self._overlays.leave(name, t_ns, self._step)
        if self._overlays.user_phase is None and self._boundary.ends_behind(self._kind, name):
            # Without a loader a step ends where its last interval does: after what was named too.
            self._close(OTHER, t_ns, self._kind)

    def _resume(self, number: int, t_ns: int) -> None:
        """Marks are missing before this one, it is the first, or the clock has jumped back."""
        if self._expected is not None:
            self.lost_marks += max(0, number - self._expected)
            self.loaders.missed()
            self._spoiled = True
        self._begin_at(t_ns)

    def _begin_at(self, t_ns: int) -> None:
        """What came before is not known, or not to be shown: a step begins here."""
        self._step, self._since_ns = OpenStep(t_ns), t_ns
        self.ledger.begin(self._number, t_ns)
        self._kind = 0
        self._overlays = Overlays()
        self._fetch_depth = self._backward_depth = self._optimizer_depth = 0
