"""The picture of a process that runs now: what the screen and the other faces look at."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .. import clock as real_clock
from ..errors import GpuwatchError
from ..formats.files import file_stem
from ..model.provider import RecordingProvider, SnapshotProvider
from ..model.snapshot import Event, Snapshot, gone
from ..recording.format import SUFFIX, Header
from ..recording.tape import Tape

if TYPE_CHECKING:  # the first frame waits for none of them
    from ..recording.recorder import Recorder
    from .collector import Clock, Collector
    from .session import Session

# The picture of a process that nobody has looked at yet: there before all that makes it is loaded.


class AwaitedPicture:
    """Shows `first` until the first frame after it was started, from then on what `make` returns
    (`tui.model.picture.RecordedPicture`).

    Not in `start`: that comes before the first frame has reached the terminal, and making the
    picture would hold it up.
    """

    def __init__(self, first: Snapshot, make: Callable[[], RecordingProvider]) -> None:
        self._first = first
        self._make = make
        self._picture: RecordingProvider | None = None
        self._is_due = False

    def start(self) -> None:
        """From the next frame on it is the real one."""
        self._is_due = True

    def _begin(self) -> None:
        """Make the real one. A process that cannot be watched any more is shown as gone."""
        self._is_due = False
        try:
            self._picture = self._make()
        except GpuwatchError as error:
            self._first = gone(self._first, str(error).splitlines()[0])
        else:
            self._picture.start()

    def snapshot(self) -> Snapshot:
        """The picture at this moment."""
        if self._is_due:
            self._begin()
        return self._first if self._picture is None else self._picture.snapshot()

    def close(self) -> None:
        """Let go of the target."""
        if self._picture is not None:
            self._picture.close()

    @property
    def news(self) -> str:
        """What was said last about a recording."""
        return "" if self._picture is None else self._picture.news

    def toggle_recording(self) -> None:
        """Begin a recording, or end it."""
        if self._picture is not None:
            self._picture.toggle_recording()


class LivePicture:
    """A session and the collector that fills it (`tui.model.picture.Picture`)."""

    news = ""

    def __init__(
        self, session: "Session", collector: "Collector", clock: "Clock" = real_clock
    ) -> None:
        self._session = session
        self._collector = collector
        self._clock = clock
        self._pictured_ns: int | None = None

    def start(self) -> None:
        """Open the sources, on the collector's thread."""
        self._collector.start()

    def snapshot(self) -> Snapshot:
        """The picture at this moment. What was not heard while this process was stopped is no
        silence of the run's, so then it is listened for first."""
        from .collector import STOPPED_NS

        now_ns, before_ns = self._clock.now_ns(), self._pictured_ns
        late = before_ns is not None and now_ns - before_ns > STOPPED_NS
        if late and self._collector.was_stopped(now_ns):
            self._collector.listen()
        self._pictured_ns = self._clock.now_ns()
        return self._session.snapshot(self._pictured_ns, self._clock.now_unix())

    def close(self) -> None:
        """Let go of the target."""
        self._collector.stop()


# A live picture that can be written to a file while it is looked at.

MOST_EVENTS: Final = 50
"""As in a snapshot without any of ours."""


class RecordablePicture:
    """A picture, the tape of its session, and at most one recording."""

    def __init__(
        self,
        picture: SnapshotProvider,
        tape: Tape,
        header: Callable[[int | None], Header],
        clock: "Clock" = real_clock,
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
        from ..recording.recorder import Recorder  # what most sessions never need

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
