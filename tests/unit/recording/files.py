"""Recordings for tests: written in memory, a second at a time, as the recorder does."""

import io
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.tui.recording.format import Entry, Header
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.recording.recorder import RecordingWriter
from tests.unit.recording.a_run import START
from tests.unit.session.making import S

HEADER = Header(
    gpuwatch="0.1.0",
    probe="0.1.0",
    torch="2.13.0",
    host="loom",
    pid=48213,
    script="train.py",
    started_ns=START,
    started_unix=1.8e9,
    begins_ns=START,
)


def recorded(entries: Sequence[Entry], ended: bool = True) -> bytes:
    """The file that holds these entries."""
    file = io.BytesIO()
    writer = RecordingWriter(file, HEADER)
    second: list[Entry] = []
    for entry in entries:
        if second and entry.t_ns - second[0].t_ns >= S:
            writer.write(second)
            second = []
        second.append(entry)
    writer.write(second)
    if ended:
        writer.end()
    return file.getvalue()


def opened(folder: Path, data: bytes) -> Recording:
    """The recording of these bytes. Raises a GpuwatchError as `Recording` does."""
    path = folder / "run.gpuwatch"
    path.write_bytes(data)
    return Recording(path)


def read(folder: Path, data: bytes) -> tuple[list[Entry], str | None]:
    """All entries of these bytes, and why they end early."""
    recording = opened(folder, data)
    try:
        return list(recording.entries()), recording.ends_early
    finally:
        recording.close()
