"""What a person has chosen to see: how much time, which moment, which stacks.

To extend it: add a field with a default that means "not chosen", and a method that returns the next
state. The app holds one `ViewState`, replaces it in its actions, and hands it to the frame by the
fields of the same name in `tui.widgets.panel.View`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from .stack_trees import StacksWhen

STEP_OF_WINDOW: Final = 8
"""Back and forward go by this part of the window: what was in the middle stays in sight."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The moments that can be shown."""

    earliest_ns: int
    latest_ns: int

    def nearest(self, t_ns: int) -> int:
        """The moment itself, or the end of the reach that it lies beyond."""
        return max(self.earliest_ns, min(t_ns, self.latest_ns))


@dataclass(frozen=True, slots=True)
class ViewState:
    """Immutable; every method returns the next one."""

    window_s: int
    """Time that the charts show."""
    window_chosen: bool = False
    """A person chose the window; until then it follows the steps."""
    held_ns: int | None = None
    """The moment that the view stays at; None: it goes on with the run."""
    moved: bool = False
    """The view is held elsewhere than where it was paused."""
    cursor_ns: int | None = None
    """The moment that the cursor of the charts reads; None: no cursor."""
    stacks_when: StacksWhen | None = None
    """Which stacks are shown; None: those that explain most."""

    def over(self, window_s: int, chosen: bool = True) -> "ViewState":
        """With this window; it follows the steps no longer where a person chose it."""
        return replace(self, window_s=window_s, window_chosen=chosen or self.window_chosen)

    def reading(self, cursor_ns: int | None) -> "ViewState":
        """With the cursor there, or without one."""
        return replace(self, cursor_ns=cursor_ns)

    def reset(self) -> "ViewState":
        """The newest, in the window that fits the steps, and no cursor."""
        return replace(self, window_chosen=False, held_ns=None, moved=False, cursor_ns=None)

    def held(self, at_ns: int) -> "ViewState":
        """Paused where the run is at."""
        return replace(self, held_ns=at_ns, moved=False)

    def following(self) -> "ViewState":
        """With the run again."""
        return replace(self, held_ns=None, moved=False)

    def at(self, t_ns: int, reach: Reach) -> "ViewState":
        """Held at a moment, or as near to it as one can get."""
        return replace(self, held_ns=reach.nearest(t_ns), moved=True)

    def at_stacks(self, when: StacksWhen) -> "ViewState":
        """With the stacks of this kind of moment."""
        return replace(self, stacks_when=when)

    def behind_s(self, newest_ns: int) -> float | None:
        """How far a held view lags behind the newest moment; None while it goes on."""
        return None if self.held_ns is None else max(0, newest_ns - self.held_ns) / 1e9

    @property
    def by_ns(self) -> int:
        """What one key press goes back or forward by."""
        return self.window_s * 10**9 // STEP_OF_WINDOW


def step_beside(starts_ns: Sequence[int], at_ns: int, by: int) -> int | None:
    """Start of the step before (-1) or after (+1) a moment; None where none is known."""
    at = bisect_left(starts_ns, at_ns) - 1 if by < 0 else bisect_right(starts_ns, at_ns)
    return starts_ns[at] if 0 <= at < len(starts_ns) else None
