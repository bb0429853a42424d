"""A live picture that can be written to a file while it is looked at."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui import clock as real_clock
from tui.collect import Clock
from tui.picture import Picture
from tui.recording.format import SUFFIX, Header
from tui.recording.tape import Tape
from tui.snapshot import Event, Snapshot
from tui.wording.file_names import file_stem

if TYPE_CHECKING:
    from tui.recording.recorder import Recorder

MOST_EVENTS: Final = 50
"""As in a snapshot without any of ours."""


class RecordablePicture:
    """A picture (`tui.picture.Picture`), the tape of its session, and at most one recording."""

    def __init__(
        self,
        picture: Picture,
        tape: Tape,
        header: Callable[[int | None], Header],
        clock: Clock = real_clock,
    ) -> None:
        self._picture = picture
        self._tape = tape
        self._header = header
        self._clock = clock
        self._recorder: Recorder | None = None
        self._events: list[Event] = []
        self.fault: str | None = None
        """Why a recording ended that nobody ended."""
        self.news = ""
        """What was said last about a recording."""

    def start(self) -> None:
        """Open the sources."""
        self._picture.start()

    def snapshot(self) -> Snapshot:
        """The picture at this moment, and what became of the recording."""
        now = self._picture.snapshot()
        self._settle()
        recorder = self._recorder
        if recorder is None and not self._events:
            return now
        events = sorted((*now.events, *self._events), key=lambda event: event.t_ns)
        status = replace(now.status, recording=str(recorder.path) if recorder else None)
        return replace(now, status=status, events=tuple(events[-MOST_EVENTS:]))

    def toggle_recording(self) -> None:
        """Begin a recording in the current folder, or end the one that runs."""
        if self._recorder is not None:
            self._recorder.ask_to_stop()
            return
        now = self._picture.snapshot()
        name = file_name(now.script, now.pid, self._clock.now_unix())
        self.record_to(Path(name), overwrite=False)

    def record_to(self, path: Path, overwrite: bool) -> None:
        """Begin a recording. What goes wrong is said in the events and by `fault`."""
        from tui.recording.recorder import Recorder  # what most sessions never need

        self._recorder = Recorder(path, self._tape, self._header, overwrite)
        self._recorder.start()
        self._say(f"recording to {path}")

    def close(self) -> None:
        """Let go of the target, and end the recording."""
        self._picture.close()
        if self._recorder is not None:
            self._recorder.stop()
            self._settle()

    def _settle(self) -> None:
        """Say what became of a recording that is not written any more."""
        recorder = self._recorder
        if recorder is None or not (recorder.is_done or recorder.fault):
            return
        self._recorder = None
        self.fault = recorder.fault
        if recorder.fault is None:
            self._say(f"recorded {recorder.path}")
        else:
            self._say(f"{recorder.path} is not recorded any more: {recorder.fault}")

    def _say(self, text: str) -> None:
        self.news = text
        said = Event(self._clock.now_ns(), None, text, "recording")
        self._events = [*self._events[1 - MOST_EVENTS :], said]


def file_name(script: str, pid: int, at_unix: float) -> str:
    """ "gpuwatch-train-4711-20261121-140301.gpuwatch"."""
    return file_stem(script, pid, at_unix) + SUFFIX
