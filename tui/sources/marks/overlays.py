"""Overlays: stretches that lie inside a phase and are named for themselves.

A compilation happens inside a forward, a checkpoint inside "other", a user's phase wherever the
user put it. Their time is taken out of the phase that encloses them, so that all still adds up.
"""

from dataclasses import dataclass
from typing import Any, Final

from ....probe.wire import marks
from .iterators import Iterators
from .open_step import CHECKPOINT, COMPILE, EVALUATION, PHASE_NAMES, OpenStep

OVERLAY_BEGINS: Final = {
    marks.COMPILE_ENTER: COMPILE,
    marks.CHECKPOINT_ENTER: CHECKPOINT,
}
OVERLAY_ENDS: Final = {
    marks.COMPILE_LEAVE: COMPILE,
    marks.CHECKPOINT_LEAVE: CHECKPOINT,
}
SAVES: Final = (marks.CHECKPOINT_ENTER, marks.CHECKPOINT_LEAVE)
"""`torch.save`, of whatever: within a fetch or a backward it is a part of that."""
NAMED_PHASES: Final[dict[str, int]] = {
    "eval": EVALUATION,
    "evaluate": EVALUATION,
    "evaluation": EVALUATION,
    "validate": EVALUATION,
    "validation": EVALUATION,
    "test": EVALUATION,
    "checkpoint": CHECKPOINT,
    "save": CHECKPOINT,
}
"""User phases whose name says what they are: all that happens inside is that."""

_ABSORBING: Final = (EVALUATION, CHECKPOINT)
_UPDATES: Final = (marks.OPTIMIZER_LEAVE, marks.OPTIMIZER_INSIDE)

Name = int | str
"""A phase of `OpenStep`, or a user's own name."""


MOST_OPEN: Final = 64
"""Nested in each other: a loop that enters a phase in each step and never leaves one has more."""


@dataclass(slots=True)
class _Overlay:
    name: Name
    entered_ns: int
    nested_ns: int = 0
    """Taken out by overlays inside this one."""
    holds_marks: bool = False
    """A fetch, backward or optimizer lies inside: then a user's phase is a frame around a loop,
    and not a part of a step."""


class Overlays:
    """The stack of overlays that are open."""

    def __init__(self) -> None:
        self._open: list[_Overlay] = []
        self.taken_ns = 0
        """Taken out of the interval that is running now."""
        self.unended = 0
        """Forgotten: more were open than are kept, or the training goes on inside. The program does
        not end them."""
        self.absorbing = 0
        """Above 0 all marks belong to an overlay (an evaluation that the user named)."""
        self._trains = 0
        """Of these marks the last that a step of the training may have."""
        self._left: set[Name] = set()
        """Names of those that were left."""
        self._given_up: set[Name] = set()
        """Of those that the training went on inside, and that were not left since."""

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def user_phase(self) -> str | None:
        """The innermost named stretch that is open."""
        if not self._open:
            return None
        name = self._open[-1].name
        return name if isinstance(name, str) else PHASE_NAMES[name]

    @property
    def innermost(self) -> Name | None:
        """What the time that passes now will be given to; None: to the phase around it."""
        if not self._open or self._open[-1].holds_marks:
            return None
        return self._open[-1].name

    def enter(self, name: Name, t_ns: int) -> None:
        """An overlay begins. Of those that never end the outermost are forgotten."""
        if len(self._open) >= MOST_OPEN:
            self.absorbing -= self._open.pop(0).name in _ABSORBING
            self.unended += 1
        if not self.absorbing:
            self._trains = 0
        self._open.append(_Overlay(name, t_ns))
        self.absorbing += name in _ABSORBING

    def leave(self, name: Name, t_ns: int, step: OpenStep) -> None:
        """An overlay ends: its own time goes to its name. One never entered is ignored."""
        self._left.add(name)
        for depth in range(len(self._open) - 1, -1, -1):
            if self._open[depth].name == name:
                break
        else:
            if name in self._given_up:
                self._given_up.discard(name)
                self.unended -= 1
            return
        overlay = self._open[depth]
        for closed in self._open[depth:]:
            self.absorbing -= closed.name in _ABSORBING
        del self._open[depth:]
        whole_ns = t_ns - overlay.entered_ns
        if self._open:
            self._open[-1].nested_ns += whole_ns
        if overlay.holds_marks:
            return
        own_ns = whole_ns - overlay.nested_ns
        self.taken_ns += own_ns
        if isinstance(name, str):
            step.phases[name] = step.phases.get(name, 0) + own_ns
        else:
            step.ns[name] += own_ns

    def absorb(self, kind: int, detail: Any, iterators: Iterators) -> Name | None:
        """A mark that belongs to an overlay. With the update of a step of the training the name of
        one that was left open, as in a generator of predictions of which the first are looked at:
        the step's batch is from an iterator that trained before, and goes on."""
        if kind == marks.ITERATION:
            iterators.made_unseen(detail)
        elif kind == marks.FETCH_ENTER:
            self._trains = kind if iterators.trains(detail) else 0
        elif kind == marks.BACKWARD_ENTER and self._trains:
            self._trains = kind
        elif kind in _UPDATES and self._trains == marks.BACKWARD_ENTER:
            self._trains = 0
            name = next(one.name for one in reversed(self._open) if one.name in _ABSORBING)
            if name not in self._left:  # else it ends, and learns something: a linear probe
                self.unended += 1
                self._given_up.add(name)
                return name
        return None

    def passed(self) -> None:
        """A fetch, backward or optimizer happens: user phases around it are frames."""
        for overlay in self._open:
            overlay.holds_marks = True
