"""What was played of a recording so far: its session, and pictures of its past."""

from collections.abc import Callable, Iterator
from typing import Final

from tui.recording.format import Entry, Looked
from tui.recording.reader import Recording
from tui.session.judge import Engine
from tui.session.keyframes import Keyframes, Spacings
from tui.session.store import Session
from tui.snapshot import Snapshot

NEAR_NS: Final = 60_000_000_000
"""Before the moment that somebody jumps to, everything is judged as it was for this long: the
verdict's window, and more looks than any of its decisions waits for."""
FAR_EVERY_NS: Final = 30_000_000_000
"""And before that only so often: judging was most of what a jump costs."""
SPACINGS_NS: Final[Spacings] = ((120 * 10**9, 10**9), (3_600 * 10**9, 10 * 10**9))
"""Pictures of what was played: closer together than those of a live run, for one plays on from
them."""


class Played:
    """Only ever goes forward; what lies behind is remembered, thinned out with its age."""

    def __init__(self, recording: Recording, engine: Engine) -> None:
        header = recording.header
        self._recording = recording
        self._session = Session(header.pid, header.script, header.started_ns, engine, replayed=True)
        self._frames = Keyframes(SPACINGS_NS)
        self._entries: Iterator[Entry] = recording.entries()
        self._next: Entry | None = None
        self._begun = False
        self._newest: Snapshot | None = None
        self._looked_ns = 0
        self.played_ns = header.begins_ns
        """As far as it was played."""
        self.until_ns = recording.until_ns
        """Its end; found to be earlier where the file is damaged."""
        self.passed_ns: tuple[int, int] | None = None
        """The last stretch that was not judged as often as it was when it was recorded."""

    @property
    def earliest_ns(self) -> int:
        """The first moment that is remembered."""
        earliest_ns = self._frames.earliest_ns
        return self._recording.header.begins_ns if earliest_ns is None else earliest_ns

    def play(self, to_ns: int, has_time: Callable[[], bool]) -> bool:
        """Play on to a moment; whether it is reached by now, or there was no time for all of it."""
        if not self._begun:
            self._begin()
        while self._next is not None and self._next.t_ns <= to_ns:
            self._take(self._next, to_ns)
            self._next = next(self._entries, None)
            if self._next is None:
                self._end()
            elif self._next.t_ns <= to_ns and not has_time():
                return False
        self._come_to(min(to_ns, self.until_ns))
        return True

    def at(self, t_ns: int) -> Snapshot:
        """The picture at a moment, or the last one where that was not played yet."""
        newest = self._newest or self._picture()
        return newest if t_ns >= self.played_ns else self._frames.at(t_ns, newest)

    def _begin(self) -> None:
        """The first picture shows that nothing was heard yet: one can come back to it."""
        self._begun = True
        self._frames.keep(self._picture())
        self._next = next(self._entries, None)
        if self._next is None:
            self._end()

    def _take(self, entry: Entry, to_ns: int) -> None:
        self._come_to(entry.t_ns)
        if not isinstance(entry, Looked):
            self._session.ingest(entry)
            return
        if to_ns - entry.t_ns > NEAR_NS and entry.t_ns - self._looked_ns < FAR_EVERY_NS:
            self._pass_over(entry.t_ns)
            return
        self._looked_ns = entry.t_ns
        self._session.look(entry.t_ns)
        if self._frames.wants(entry.t_ns, to_ns):
            self._frames.keep(self._picture(), to_ns)

    def _pass_over(self, t_ns: int) -> None:
        since_ns, until_ns = self.passed_ns or (self._looked_ns, 0)
        if until_ns < t_ns - 2 * FAR_EVERY_NS:  # another stretch
            since_ns = self._looked_ns
        self.passed_ns = (since_ns, t_ns)

    def _come_to(self, t_ns: int) -> None:
        self.played_ns = max(self.played_ns, t_ns)
        self._newest = None

    def _end(self) -> None:
        if self._recording.ends_early:
            self.until_ns = self.played_ns

    def _picture(self) -> Snapshot:
        header = self._recording.header
        at_unix = header.started_unix + (self.played_ns - header.started_ns) / 1e9
        self._newest = self._session.snapshot(self.played_ns, at_unix)
        return self._newest
