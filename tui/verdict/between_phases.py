"""Of the time between the phases what is not the user's: the probe's own hooks, PyTorch's wrapper
around an update, within which the hooks of an update are called, clipping, and the optimizer where
it calls the net."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .code_places import clips, in_optimizer, main_places, share_where, zeroes
from .findings import Evidence
from .format import ms
from .stack_samples import FrameShare
from .statistics import Share, of_samples
from .step_time import spent
from .thresholds.causes import NOTE_SHARE
from .window import RunFacts, StepWindow

_BETWEEN: Final = ("other", "synchronisation", "waiting", None)


@dataclass(frozen=True, slots=True)
class NotTheUsers:
    """ns of a step, on the training thread."""

    hooks_ns: float
    wrapper_ns: float
    step_ns: float

    @property
    def share(self) -> float:
        """Part of a step that both take, 0 to 1."""
        return (self.hooks_ns + self.wrapper_ns) / self.step_ns if self.step_ns > 0 else 0.0

    def evidence(self) -> tuple[Evidence, ...]:
        """What they take, where it is worth a line: of steps of a few milliseconds and less."""
        if self.share < NOTE_SHARE:
            return ()
        taken = (
            (self.wrapper_ns, "PyTorch's wrapper around the update"),
            (self.hooks_ns, "gpuwatch"),
        )
        text = " and ".join(f"{ms(ns)} {whose}" for ns, whose in taken if ns)
        both_ms = (self.hooks_ns + self.wrapper_ns) / 1e6
        return (Evidence(f"not counted: {text}", "hook", both_ms, "ms"),)


def not_the_users(window: StepWindow) -> NotTheUsers:
    """Nothing where the probe has not measured them.

    A hook's cost lies before the mark of its phase's beginning and behind the one of its end, on
    the other side of the boundary. Between the phases are so the end of a backward, both ends of an
    update and the beginning of a fetch. Without a loader "forward" begins behind the update. An
    update within the backward, or a compiled one, has no phase and nothing beside it.
    """
    rows, total = window.steps, spent(window.steps)
    steps = max(1, total.steps)
    updates = sum(row.optimizer_steps for row in rows if row.optimizer_ns)
    marks = sum(row.backwards for row in rows) + updates
    before_ns, behind_ns = window.update_wrapper_ns or (0, 0)
    wrapped_ns = updates * before_ns
    if window.sees_loading:
        marks += total.fetches + updates
        wrapped_ns += updates * behind_ns
    hooks_ns = marks * (window.mark_cost_ns or 0)
    return NotTheUsers(hooks_ns / steps, wrapped_ns / steps, total.wall_ns / steps)


def clipped_part(window: RunFacts) -> Share:
    """Of the time between the phases the part in which gradients are clipped, by the samples that
    lie there, with its 90 % interval: of few samples it is hardly known. Nothing where the program
    does not clip, as far as the probe and the samples know."""
    return _part_between(window, clips)


def part_of_update(window: RunFacts) -> Share:
    """The same of all that belongs to an update, which its mark does not hold: gradients are
    dropped or zeroed as well (generated run 100131, whose update has a third of its 0.6 ms there:
    "12 % of each step is in Python")."""
    return _part_between(window, _is_of_update)


def _is_of_update(place: FrameShare) -> bool:
    return clips(place) or zeroes(place) or (place.phase in _BETWEEN and in_optimizer(place))


def _part_between(window: RunFacts, which: Callable[[FrameShare], bool]) -> Share:
    places = main_places(window)
    held = share_where(places, which)
    if not held and not window.clips:
        return Share(0.0, 0.0, 0.0)
    others = share_where(places, lambda one: not which(one) and one.phase in _BETWEEN)
    if window.stacks is None or not held + others:
        return Share(0.0, 0.0, 1.0)
    return of_samples(held / (held + others), (held + others) * window.stacks.main_samples)


def of_closures(window: StepWindow) -> float:
    """What an optimizer that calls a closure does between two calls, as part of the time by
    samples: no mark shows it (L-BFGS on an H200: 4.3x by a graph was said, 2.4x measured)."""
    if any(row.optimizer_ns for row in window.steps):
        return 0.0
    return share_where(main_places(window), in_optimizer)
