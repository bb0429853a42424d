"""The end of a recording, as the screen shows it."""

from pathlib import Path

from gpuwatch.tui.cli.replay import play_to
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.reader import Recording


class _Last:
    """A face that keeps the last picture."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        """One picture."""
        self.snapshot = snapshot

    last = show


def last_picture(file: Path) -> Snapshot:
    """What the screen shows at the end of a recording. Raises GpuwatchError where it cannot be
    read, and ValueError where nothing is on it."""
    face = _Last()
    play_to(Recording(file), face, None)
    if face.snapshot is None:
        raise ValueError(f"{file}: nothing is on it")
    return face.snapshot
