"""A process that runs now: the thread that watches it, its past, and its recording."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from .. import clock as real_clock
from ..errors import GpuwatchError
from ..formats.files import file_stem
from ..model.provider import Frame, Reach
from ..model.snapshot import Event as RunEvent
from ..model.snapshot import Snapshot, as_ended
from ..recording.format import SUFFIX, Header, Past
from ..recording.tape import Tape
from .collector import Clock, Collector, Source, let_go
from .history import History

if TYPE_CHECKING:  # the first frame is drawn before these are loaded
    from ..recording.recorder import Recorder
    from .session import Session

MOST_EVENTS: Final = 50
"""As in a snapshot without any of ours."""
LAST_TURN_S: Final = 2.0
"""Longest that `close` waits for a source in the middle of a poll."""

HeaderFrom = Callable[[int | None], Header]
"""The header of a recording that begins at this time, ns; None: now."""
PastFrom = Callable[[int], Past | None]
"""What was known before a recording that begins at this time, ns."""


class Connection(NamedTuple):
    """What a process is watched by."""

    session: "Session"
    sources: list[Source]
    header: HeaderFrom
    is_another: Callable[[], bool] = lambda: False
    """Whether the pid that was named means another process by now."""


Connect = Callable[[Tape], Connection]
"""Raises a GpuwatchError that says why where the process cannot be watched."""


class LiveProvider:
    """Watches a process on a thread of its own (`tui.model.provider.TimeTravelProvider`).

    The thread connects, collects, judges and publishes; readers get the last snapshot and never
    wait. It begins with the first snapshot that is read after `start`: the frame before has reached
    the terminal by then, and what connecting loads does not hold it up.
    """

    plays = False
    hurries = False

    def __init__(self, first: Snapshot, connect: Connect, clock: Clock = real_clock) -> None:
        """`first` is shown until there is more; it becomes an ended one where connecting fails."""
        self.recording = LiveRecording(clock)
        self._connect = connect
        self._connection: Connection | None = None
        self._clock = clock
        self._lock = Lock()
        """Held while a snapshot is put in place, and by no reader."""
        self._collected = first
        self._published = first
        self._is_read = False
        self._fault: BaseException | None = None
        """A mistake of ours that ended the thread."""
        self._history: History | None = None
        """There is one as soon as somebody asks for moments: a stream of lines does not."""
        self._before_s = 0.0
        """For so long the pid stood for another process."""
        self._is_started = False
        self._stop = Event()
        self.on_snapshot: Callable[[Snapshot], None] | None = None
        """Called with every new snapshot, on the collector's thread."""
        self._thread = Thread(target=self._run, name="collector", daemon=True)

    def connect(self) -> "LiveProvider":
        """Connect now and not on the thread; returns itself. Raises as `Connect` does."""
        self._connection = self._connect(self.recording.tape)
        self.recording.header = self._connection.header
        self.recording.past = self._connection.session.past
        now_ns, now_unix = self._clock.now_ns(), self._clock.now_unix()
        self._publish(self._connection.session.snapshot(now_ns, now_unix))
        return self

    def start(self) -> None:
        """Watch, from the next snapshot on that somebody reads."""
        self._is_started = True

    def snapshot(self) -> Snapshot:
        """The last that was published. Raises what broke the thread, if anything did."""
        if self._is_started and not self._thread.ident and not self._stop.is_set():
            self._thread.start()
        if self._fault is not None:
            raise self._fault
        self._is_read = True
        return self._published

    def close(self) -> None:
        """Let go of the process, and end the recording. May be called twice."""
        self._stop.set()
        if self._thread.ident:
            self._thread.join(LAST_TURN_S)
        elif self._connection is not None:  # nobody began it, or there was no thread for it
            for source in self._connection.sources:
                let_go(source)
            self._connection = None
        self.recording.close()

    @property
    def reach(self) -> Reach:
        """From the first snapshot that has anything of the run until now."""
        newest = self._published
        if self._history is None:
            return Reach(newest.t_ns, newest.t_ns)
        return self._history.reach(newest)

    def moment(self, held_ns: int | None) -> Frame:
        """The run now, or as it was."""
        if self._history is None:
            self._history = History()
        return self._history.moment(held_ns, self.snapshot())

    def go_to(self, t_ns: int) -> None:
        """A run cannot go on from its past."""

    def change_speed(self, by: int) -> None:
        """Nor any faster."""

    @property
    def news(self) -> str:
        """The last message about a recording."""
        return self.recording.news

    def report(self, text: str) -> None:
        """Something of the monitor's own that a person should read, as news and as an event."""
        with self._lock:
            self.recording.report(text)
        self._publish(None)

    def toggle_recording(self) -> None:
        """Begin a recording in the current folder, or end the one that runs."""
        if self._connection is None:
            return
        with self._lock:
            self.recording.toggle(self._published)
        self._publish(None)

    def _run(self) -> None:
        try:
            if self._connection is None:
                self.connect()
            while not self._watched():
                self._move()
        except GpuwatchError as error:
            self._publish(as_ended(self._published, str(error).splitlines()[0]))
        except BaseException as error:  # shown by whoever reads next, on a thread that can
            self._fault = error

    def _watched(self) -> bool:
        """Watch until it is to end; False where the pid means another process before that. A
        recording is of one process."""
        assert self._connection is not None
        session, sources, _, is_another = self._connection
        collector = Collector(sources, session, self._publish, self._was_read, self._clock)
        collector.run(self._stop, lambda: is_another() and self._may_move())
        return self._stop.is_set()

    def _may_move(self) -> bool:
        """What has ended keeps its last words."""
        return self._collected.status.state != "ended" and not self.recording.is_under_way

    def _move(self) -> None:
        """Watch what the pid means by now: nothing of the process before is its own."""
        self._before_s = self._published.attached_s
        self.recording.tape = Tape(self.recording.tape.whole_argv)
        if self._history is not None:
            self._history = History()
        self.connect()
        self.report(f"{self._published.pid} trains: it is watched from here on")

    def _was_read(self) -> bool:
        was_read, self._is_read = self._is_read, False
        return was_read

    def _publish(self, snapshot: Snapshot | None) -> None:
        """A newer snapshot, or with None what has become of the recording since the last one."""
        if snapshot is not None and self._before_s:
            snapshot = replace(snapshot, attached_s=self._before_s + snapshot.attached_s)
        with self._lock:
            self._collected = snapshot or self._collected
            self._published = published = self.recording.shown_in(self._collected)
        if self._history is not None and snapshot is not None:
            self._history.keep(published)
        if self.on_snapshot is not None and snapshot is not None:
            self.on_snapshot(published)


class LiveRecording:
    """The recording that is made of a live run: one at a time, and events that say how it went."""

    def __init__(self, clock: Clock = real_clock) -> None:
        self.tape = Tape()
        self.header: HeaderFrom | None = None
        self.past: PastFrom = lambda until_ns: None
        """Both are known when the process is connected."""
        self.fault: str | None = None
        """Why a recording ended that nobody ended."""
        self.news = ""
        """The last message about a recording."""
        self._clock = clock
        self._recorder: Recorder | None = None
        self._events: tuple[RunEvent, ...] = ()

    def toggle(self, now: Snapshot) -> None:
        """Begin one in the current folder, or end the one that runs."""
        if self._recorder is not None:
            self._recorder.ask_to_stop()
            return
        name = file_name(now.script, now.pid, self._clock.now_unix())
        self.begin(Path(name), overwrite=False)

    def begin(self, path: Path, overwrite: bool) -> None:
        """Record a process that is connected. `fault` and the events say what goes wrong."""
        from ..recording.recorder import Recorder  # what most sessions never need

        assert self.header is not None
        self._recorder = Recorder(path, self.tape, self.header, self.past, overwrite)
        self._recorder.start()
        self._report(f"recording to {path}")

    def shown_in(self, snapshot: Snapshot) -> Snapshot:
        """The same with the file that is written, and the events of recordings."""
        self._settle()
        recorder = self._recorder
        if recorder is None and not self._events:
            return snapshot
        events = sorted((*snapshot.events, *self._events), key=lambda event: event.t_ns)
        status = replace(snapshot.status, recording=str(recorder.path) if recorder else None)
        return replace(snapshot, status=status, events=tuple(events[-MOST_EVENTS:]))

    @property
    def is_under_way(self) -> bool:
        """One is written."""
        return self._recorder is not None

    def close(self) -> None:
        """End it, and wait for the disk."""
        if self._recorder is not None:
            self._recorder.stop()
            self._settle()

    def report(self, text: str) -> None:
        """Another line among them."""
        self._report(text, "notify")

    def _settle(self) -> None:
        """Report a recording that is not written any more."""
        recorder = self._recorder
        if recorder is None or not (recorder.is_done or recorder.fault):
            return
        self._recorder = None
        self.fault = recorder.fault
        if recorder.fault is None:
            self._report(f"recorded {recorder.path}")
        else:
            self._report(f"{recorder.path} is not recorded any more: {recorder.fault}")

    def _report(self, text: str, kind: str = "recording") -> None:
        self.news = text
        event = RunEvent(self._clock.now_ns(), None, text, kind)
        self._events = (*self._events[1 - MOST_EVENTS :], event)


def file_name(script: str, pid: int, at_unix: float) -> str:
    """ "gpuwatch-train-4711-20261121-140301.gpuwatch"."""
    return file_stem(script, pid, at_unix) + SUFFIX
