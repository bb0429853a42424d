"""Where a step ends: the first fetch after an optimizer step, and what stands in for it.

* no loader ever seen: the optimizer's end, decided when the next backward comes;
* a loader, but no optimizer in `patience` micro-steps (a compiled or home-made one): the first
  fetch after a backward; patience becomes twice the longest accumulation seen;
* no backward ever: from fetch to fetch, at once when gradients are off (inference);
* `probe.step()`: there, and nowhere else.
"""

from typing import Final

from probe.open_step import OpenStep

PATIENCE: Final = 16
"""Micro-steps; accumulation over more than this splits the first step wrongly, then never again."""


class Boundary:
    """Decides, and remembers what the run has shown so far."""

    def __init__(self) -> None:
        self.trained = False
        """A backward or an optimizer has been seen: this run is no inference."""
        self._explicit = False
        self._loader_seen = False
        self._patience = PATIENCE
        self._without_optimizer = False
        self._unstepped = 0
        """Backwards of steps that were ended without an optimizer, since it was seen last."""

    def said(self) -> None:
        """`probe.step()` was called: from now on it alone ends steps."""
        self._explicit = True

    def is_plain(self) -> bool:
        """Steps end at the fetch after an optimizer step, and did so last time."""
        return self.trained and not (self._explicit or self._unstepped or self._without_optimizer)

    def steps_before_fetch(self, step: OpenStep, grad: bool) -> int:
        """How many steps the open one is, if a fetch that begins now ends it; 0 if it goes on."""
        self._loader_seen = True
        if self._explicit:
            return 0
        if step.optimized:
            self._patience = max(self._patience, 2 * (self._unstepped + step.backwards))
            self._unstepped = 0
            self._without_optimizer = False
            return 1
        if self.trained:
            if not step.backwards:
                return 0
            if not self._without_optimizer and step.backwards < self._patience:
                return 0
            self._without_optimizer = True
            self._unstepped += step.backwards
            return step.backwards
        if step.fetches and (not grad or step.fetches >= PATIENCE):
            return step.fetches
        return 0

    def ends_before_backward(self, step: OpenStep) -> bool:
        """Whether a backward that begins now shows that the open step ended at its last mark."""
        return step.optimized and not self._loader_seen and not self._explicit
