"""What a screen looks at: anything that can say how the run stands now."""

from typing import Protocol

from tui.snapshot import Snapshot


class Picture(Protocol):
    """A session, a recording that plays, or a fake one in a test."""

    def start(self) -> None:
        """Open the sources. Called once, after the first frame is on the screen; returns soon."""

    def snapshot(self) -> Snapshot:
        """The picture at this moment. Called every frame, before `start` too; never waits."""

    def close(self) -> None:
        """Let go of the target. Called once, when the screen has left."""
