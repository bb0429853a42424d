"""What a person has chosen to see, and who provides the snapshot of it.

To extend `ViewState`: add a field with a default that means "not chosen", and a method that returns
the next state. The app holds one, replaces it in its actions, and hands it to the frame.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, runtime_checkable

from .snapshot import Snapshot
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


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines of one file, or why there are none."""

    path: str
    first: int
    """Number of the first of the lines, from 1."""
    lines: tuple[str, ...]
    line: int
    """The one that the frame names."""
    why_not: str = ""


SourceReader = Callable[[str, Snapshot], SourceText]
"""Takes a frame, "function (file:line)", and the snapshot that it is from."""


def nobody_reads(frame: str, snapshot: Snapshot) -> SourceText:
    """For a screen without a reader."""
    return SourceText("", 1, (), 0, "nothing here reads source files")


class SnapshotProvider(Protocol):
    """What every face needs."""

    def start(self) -> None:
        """Open the sources. Called once, after the first frame is on the screen; returns soon."""

    def snapshot(self) -> Snapshot:
        """The last one that was published. Called every frame, before `start` too; never waits."""

    def close(self) -> None:
        """Let go of the target. Called once, when the screen has left."""


@runtime_checkable
class RecordingProvider(SnapshotProvider, Protocol):
    """A run that can be written to a file while it is watched."""

    @property
    def news(self) -> str:
        """The last message about a recording; "" before any."""

    def toggle_recording(self) -> None:
        """Begin a recording, or end it. How that went is in `news`."""


class Frame(NamedTuple):
    """What there is to see at one moment."""

    snapshot: Snapshot
    """The last snapshot at or before it."""
    at_ns: int | None
    """The moment, where it is another than the snapshot's own: charts end there."""
    newest_ns: int
    """As far as the run is known: a live one's now, and where a replay plays."""


@runtime_checkable
class TimeTravelProvider(SnapshotProvider, Protocol):
    """What the screen needs: one can go back."""

    @property
    def plays(self) -> bool:
        """It goes on from wherever one is, as a recording does, and not from now."""

    @property
    def hurries(self) -> bool:
        """The last moment that was asked for is not reached yet: the next frame should be soon."""

    @property
    def reach(self) -> Reach:
        """The moments that can be shown."""

    def moment(self, held_ns: int | None) -> Frame:
        """The run at this moment, or with None where it has come to. Called every frame; never
        waits, so what is far ahead in a recording comes over several frames."""

    def go_to(self, t_ns: int) -> None:
        """Where it plays: go on from there."""

    def change_speed(self, by: int) -> None:
        """Where it plays: twice as fast for every 1, half for every -1."""
