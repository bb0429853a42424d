"""Where a face gets its snapshots from: a live run, a replay, or a fake in a test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from .snapshot import Snapshot
from .view_state import Reach


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
