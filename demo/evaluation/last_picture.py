"""The end of a recording, as the screen shows it."""

from pathlib import Path

from gpuwatch.tui.cli.replay import last_snapshot
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.reader import Recording


def last_picture(file: Path) -> Snapshot:
    """What the screen shows at the end of a recording. Raises GpuwatchError where it cannot be
    read."""
    return last_snapshot(Recording(file))
