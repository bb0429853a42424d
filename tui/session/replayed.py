"""The picture of a recording that plays: the same session, at the pace of an injected clock."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from tui.recording.format import Entry, Looked
from tui.recording.reader import Recording
from tui.session.judge import Engine
from tui.session.store import Session
from tui.snapshot import Event, Snapshot
from tui.wording.numbers import duration

MOST_EVENTS: Final = 50
"""As in a snapshot without ours."""


class Moments(Protocol):
    """A clock, real or held."""

    def now_ns(self) -> int: ...


class ReplayedPicture:
    """Plays a recording (`tui.picture.Picture`).

    It judges where the recorded session judged, on what that had seen, and so says the same. After
    the end the last picture stays.
    """

    def __init__(
        self, recording: Recording, engine: Engine, clock: Moments, speed: float = 1.0
    ) -> None:
        header = recording.header
        self._recording = recording
        self._clock = clock
        self._speed = speed
        self._session = Session(header.pid, header.script, header.started_ns, engine, replayed=True)
        self._entries: Iterator[Entry] = recording.entries()
        self._next: Entry | None = None
        self._began_ns: int | None = None
        """By our clock."""
        self._newest_ns = header.begins_ns
        self.is_over = False
        """Everything was shown."""

    def start(self) -> None:
        """Begin to play."""
        self._began_ns = self._clock.now_ns()
        self._next = next(self._entries, None)

    def snapshot(self) -> Snapshot:
        """The picture where the replay has come to. Never waits; plays what is due by now."""
        at_ns = self._at_ns()
        if self._began_ns is not None:
            self._play(at_ns)
        header = self._recording.header
        at_unix = header.started_unix + (at_ns - header.started_ns) / 1e9
        now = self._session.snapshot(at_ns, at_unix)
        status = replace(now.status, replay=self._position(at_ns))
        events = (Event(header.begins_ns, None, self._told()), *now.events)
        return replace(now, status=status, events=events[-MOST_EVENTS:])

    def close(self) -> None:
        """Let go of the file."""
        self._recording.close()

    def _at_ns(self) -> int:
        begins_ns, until_ns = self._recording.header.begins_ns, self._recording.until_ns
        if self._began_ns is None:
            return begins_ns
        passed_ns = round((self._clock.now_ns() - self._began_ns) * self._speed)
        return min(begins_ns + passed_ns, until_ns)

    def _play(self, at_ns: int) -> None:
        while self._next is not None and self._next.t_ns <= at_ns:
            if isinstance(self._next, Looked):
                self._session.look(self._next.t_ns)
            else:
                self._session.ingest(self._next)
            self._next = next(self._entries, None)
        self.is_over = self._next is None or at_ns >= self._recording.until_ns

    def _position(self, at_ns: int) -> str:
        begins_ns, until_ns = self._recording.header.begins_ns, self._recording.until_ns
        if self.is_over:
            early = self._recording.ends_early
            return f"over: {early}" if early else "over"
        at_s, all_s = (at_ns - begins_ns) / 1e9, (until_ns - begins_ns) / 1e9
        return f"{duration(at_s)} of {duration(all_s)}"

    def _told(self) -> str:
        header = self._recording.header
        at_unix = header.started_unix + (header.begins_ns - header.started_ns) / 1e9
        at = datetime.fromtimestamp(at_unix)
        return f"replay of {self._recording.path.name}, recorded {at:%Y-%m-%d %H:%M}"
