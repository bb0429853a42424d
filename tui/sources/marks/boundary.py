"""Where a step ends: the first fetch after an optimizer step, and what stands in for it.

* no loader ever seen, or none for `PATIENCE` updates (one batch used again and again): the
  optimizer's end, decided when the next backward comes, or the next update where no backward has
  come before it (`torch.autograd.grad` makes the gradients: MAML), or, behind one backward, more
  updates than a loop has optimizers (a graph was captured then, which is replayed);
* no optimizer in `patience` micro-steps, or in `PATIENCE_NS` where none was ever seen (a compiled
  or home-made one): the first fetch after a backward, without a loader the next backward; patience
  becomes twice the longest accumulation seen;
* no backward ever: from fetch to fetch, at once when gradients are off (inference), else after
  `PATIENCE` batches (nobody switched them off, or `torch.autograd.grad` makes them);
* `probe.step()`: there, and nowhere else.
"""

from typing import Final

from ....probe.wire import marks
from .open_step import CHECKPOINT, EVALUATION, FORWARD, OTHER, STARTUP, OpenStep

PATIENCE: Final = 16
"""Micro-steps; accumulation over more than this splits the first step wrongly, then never again."""
PATIENCE_NS: Final = 3_000_000_000
LEAST_BACKWARDS: Final = 2
"""Long steps have so much: sixteen of half a second would be eight seconds without a step."""

BEFORE_FORWARD: Final = (marks.FETCH_LEAVE, marks.OPTIMIZER_LEAVE)
"""Marks behind which a forward begins, whose gradients no backward may make."""


class Boundary:
    """Decides, and remembers what the run has shown so far."""

    def __init__(self) -> None:
        self.trained = False
        """A backward or an optimizer has been seen: this run is no inference."""
        self._untrained = False
        """So many batches came without either: the next are steps at once."""
        self._explicit = False
        self._loader_seen = False
        self._updates = 0
        """Backwards behind an optimizer's step, since the last fetch."""
        self._patience = PATIENCE
        self._without_optimizer = False
        self._optimizer_seen = False
        self._unstepped = 0
        """Backwards of steps that were ended without an optimizer, since it was seen last."""

    def by_user(self) -> None:
        """`probe.step()` was called: from now on it alone ends steps."""
        self._explicit = True

    def without_loader(self) -> None:
        """The loader that was seen is an evaluation's, and the training has none."""
        self._loader_seen = False

    def is_plain(self) -> bool:
        """Steps end at the fetch after an optimizer step, and did so last time."""
        return self.trained and not (self._explicit or self._unstepped or self._without_optimizer)

    def ends_behind(self, kind: int, name: int | str) -> bool:
        """Whether a step that no fetch ends goes on to the end of what was named so, where its last
        interval ended with this mark: behind an optimizer's, and of steps from backward to backward
        a checkpoint or an evaluation behind it. Else the next step would be longer than its phases
        by that, and this one shorter."""
        if kind == marks.OPTIMIZER_LEAVE:
            return True
        by_backward = self._without_optimizer and not (self._loader_seen or self._explicit)
        return by_backward and kind == marks.BACKWARD_LEAVE and name in (CHECKPOINT, EVALUATION)

    def gap_before_fetch(self, kind: int, evaluating: bool) -> int:
        """The phase of the time since the last mark, of that kind, to a fetch or its iterator."""
        if kind == marks.ITERATION:
            return STARTUP
        if kind == marks.FETCH_LEAVE:
            if evaluating:
                return EVALUATION
            if not self.trained:
                return FORWARD  # inference: what follows a batch is the model
        return OTHER

    def steps_before_fetch(
        self, step: OpenStep, t_ns: int, grad: bool, evaluates: bool = False
    ) -> int:
        """How many steps the open one is, if a fetch that begins now ends it; 0 if it goes on. One
        that `evaluates` shows no loader of the training."""
        if not evaluates:
            self._loader_seen = True
            self._updates = 0
        return self.steps_before_iterator(step, t_ns, grad)

    def steps_before_iterator(self, step: OpenStep, t_ns: int, grad: bool = True) -> int:
        """The same where an iterator is made, which is no fetch: Accelerate's dispatcher makes one
        on every rank, and fetches on the first alone."""
        if self._explicit:
            return 0
        if step.optimized:
            return self._optimized(step)
        if self.trained:
            return self._unoptimized(step, t_ns)
        self._untrained |= step.fetches >= PATIENCE
        return step.fetches if self._untrained or not grad else 0

    def steps_before_backward(self, step: OpenStep, t_ns: int) -> int:
        """How many steps the open one is, if a backward that begins now shows that it ended at its
        last mark; 0 if it goes on."""
        if self._explicit:
            return 0
        if not step.optimized:
            return 0 if self._loader_seen else self._unoptimized(step, t_ns)
        if not self._loader_seen:
            return self._optimized(step)
        self._updates += 1
        if self._updates < PATIENCE:
            return 0
        self._loader_seen = False
        return self._updates

    def steps_before_update(self, step: OpenStep) -> int:
        """The same of an optimizer's step that begins now, without a backward since the last."""
        if self._explicit or self._loader_seen or not step.optimized:
            return 0
        if step.backwards and step.optimizer_steps <= step.backwards * marks.MOST_BEHIND_ONE:
            return 0
        return self._optimized(step)

    def _optimized(self, step: OpenStep) -> int:
        self._patience = max(self._patience, 2 * (self._unstepped + step.backwards))
        self._unstepped = 0
        self._without_optimizer = False
        self._optimizer_seen = True
        return 1

    def _unoptimized(self, step: OpenStep, t_ns: int) -> int:
        if not step.backwards:
            return 0
        long = not self._optimizer_seen and t_ns - step.started_ns >= PATIENCE_NS
        enough = LEAST_BACKWARDS if long else self._patience
        if not self._without_optimizer and step.backwards < enough:
            return 0
        self._without_optimizer = True
        self._unstepped += step.backwards
        return step.backwards

    def ends_with_the_run(self, step: OpenStep) -> bool:
        """Whether the open step is complete as the run ends: one whose batch was fetched ahead has
        no fetch behind it."""
        return step.optimized and not self._explicit
