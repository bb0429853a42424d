"""A recording that plays: the same session, at the pace of an injected clock."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from ..model.provider import Frame, Reach
from ..model.snapshot import Event, Snapshot
from ..recording.format import Entry, Looked
from ..recording.reader import Recording
from ..wording.numbers import clock
from .history import Keyframes, Spacings
from .judge import Engine
from .session import Session

NEAR_NS: Final = 60_000_000_000
"""Before the moment that somebody jumps to, everything is judged as it was for this long: the
verdict's window, and more verdicts than any of its decisions waits for."""
CLOSEST_NS: Final = 100_000_000
"""No session judges twice within this (once a second, and at an end): a made-up recording does."""
FAR_EVERY_NS: Final = 30_000_000_000
"""And before that only so often: judging was most of what a jump costs."""
SPACINGS_NS: Final[Spacings] = ((120 * 10**9, 10**9), (3_600 * 10**9, 10 * 10**9))
"""Snapshots of what was played: closer together than those of a live run, for one plays on from
them."""


class Played:
    """What was played of a recording so far. It only goes forward; what lies behind is remembered,
    thinned out with its age."""

    def __init__(self, recording: Recording, engine: Engine) -> None:
        header = recording.header
        self._recording = recording
        self._session = Session(header.pid, header.script, header.started_ns, engine)
        self._frames = Keyframes(SPACINGS_NS)
        self._entries: Iterator[Entry] = recording.entries()
        self._next: Entry | None = None
        self._begun = False
        self._newest: Snapshot | None = None
        self._judged_ns = 0
        self.played_ns = header.begins_ns
        """As far as it was played."""
        self.until_ns = recording.until_ns
        """Its end; found to be earlier where the file is damaged."""
        self.passed_ns: tuple[int, int] | None = None
        """The last time that was not judged as often as it was when it was recorded."""

    @property
    def next_ns(self) -> int:
        """Time of the next entry, or of the end."""
        return self.until_ns if self._next is None else self._next.t_ns

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
        """The snapshot at a moment, or the last one where that was not played yet."""
        newest = self._newest or self._snapshot()
        return newest if t_ns >= self.played_ns else self._frames.at(t_ns, newest)

    def _begin(self) -> None:
        """The first snapshot has nothing of the run yet: one can come back to it."""
        self._begun = True
        self._frames.keep(self._snapshot())
        self._next = next(self._entries, None)
        if self._next is None:
            self._end()

    def _take(self, entry: Entry, to_ns: int) -> None:
        self._come_to(entry.t_ns)
        if not isinstance(entry, Looked):
            self._session.ingest(entry)
            return
        if entry.t_ns - self._judged_ns < CLOSEST_NS:
            return
        if to_ns - entry.t_ns > NEAR_NS and entry.t_ns - self._judged_ns < FAR_EVERY_NS:
            self._pass_over(entry.t_ns)
            return
        self._judged_ns = entry.t_ns
        self._session.judge(entry.t_ns)
        if self._frames.wants(entry.t_ns, to_ns):
            self._frames.keep(self._snapshot(), to_ns)

    def _pass_over(self, t_ns: int) -> None:
        since_ns, until_ns = self.passed_ns or (self._judged_ns, 0)
        if until_ns < t_ns - 2 * FAR_EVERY_NS:
            since_ns = self._judged_ns
        self.passed_ns = (since_ns, t_ns)

    def _come_to(self, t_ns: int) -> None:
        self.played_ns = max(self.played_ns, t_ns)
        self._newest = None

    def _end(self) -> None:
        if self._recording.ends_early:
            self.until_ns = self.played_ns

    def _snapshot(self) -> Snapshot:
        header = self._recording.header
        at_unix = header.started_unix + (self.played_ns - header.started_ns) / 1e9
        self._newest = self._session.snapshot(self.played_ns, at_unix)
        return self._newest


MOST_EVENTS: Final = 50
"""As in a snapshot without ours."""
SLOWEST, FASTEST = 1 / 8, 64.0
STALE_NS: Final = 2_000_000_000
"""Numbers that are older than the moment by this much have their time beside them."""
SLICE_NS: Final = 100_000_000
"""Time that a frame may take to come nearer to a moment far ahead: keys are still answered."""


class ReplayClock(Protocol):
    """`tui.clock`, or one that is moved by hand."""

    def now_ns(self) -> int: ...


class ReplayProvider:
    """Plays a recording (`tui.model.provider.TimeTravelProvider`).

    It judges when the recorded session did, on the same observations, and so comes to the same
    verdicts; but for what somebody jumps over, as `Played` has it. After the end the last snapshot
    stays.
    """

    plays = True

    def __init__(
        self, recording: Recording, engine: Engine, clock: ReplayClock, speed: float = 1.0
    ) -> None:
        self._recording = recording
        self._clock = clock
        self._speed = speed
        self._played = Played(recording, engine)
        self._from_ns = recording.header.begins_ns
        """Where it was at `_since_ns` of our clock, from which on it plays."""
        self._since_ns: int | None = None
        """None: it does not play, before its start or because somebody holds it."""
        self._started = False
        self.hurries = False

    def start(self) -> None:
        """Begin to play."""
        self._started = True
        self._since_ns = self._clock.now_ns()

    def snapshot(self) -> Snapshot:
        """Where the replay has come to. Plays what is due by now, for `SLICE_NS` at most."""
        return self.moment(None).snapshot

    def play_on(self) -> None:
        """As `snapshot`, without one: of what only its end is wanted of."""
        self._come(None)

    def close(self) -> None:
        """Let go of the file."""
        self._recording.close()

    @property
    def is_over(self) -> bool:
        """Everything was played."""
        return self._at_ns() >= self._played.until_ns and not self.hurries

    @property
    def next_ns(self) -> int:
        """How far it is to what comes next in the recording, ns of its time."""
        return max(0, self._played.next_ns - self._at_ns())

    @property
    def reach(self) -> Reach:
        """From the first snapshot that is remembered to the end of the recording."""
        return Reach(self._played.earliest_ns, self._played.until_ns)

    def moment(self, held_ns: int | None) -> Frame:
        """The recording at this moment, or as far on the way there as there was time to go."""
        at_ns = self._come(held_ns)
        shown = self._played.at(at_ns)
        status = replace(shown.status, replay=self._position(at_ns, held_ns, shown.t_ns))
        events = sorted((*self._own_events(), *shown.events), key=lambda event: event.t_ns)
        shown = replace(shown, status=status, events=tuple(events[-MOST_EVENTS:]))
        return Frame(shown, at_ns if shown.t_ns < at_ns and not self.hurries else None, at_ns)

    def _come(self, held_ns: int | None) -> int:
        """Play what is due, and where that leads."""
        if held_ns is not None:
            self._from_ns, self._since_ns = held_ns, None
        elif self._since_ns is None and self._started:
            self._since_ns = self._clock.now_ns()
        at_ns = self._at_ns()
        self.hurries = self._started and not self._play(at_ns)
        at_ns = min(at_ns, self._played.until_ns)
        if self.hurries:
            self.go_to(at_ns)
        return at_ns

    def go_to(self, t_ns: int) -> None:
        """Go on from there."""
        self._from_ns = t_ns
        if self._since_ns is not None:
            self._since_ns = self._clock.now_ns()

    def change_speed(self, by: int) -> None:
        """Twice as fast for every 1, half for every -1."""
        self.go_to(self._at_ns())
        self._speed = max(SLOWEST, min(self._speed * 2.0**by, FASTEST))

    def _play(self, to_ns: int) -> bool:
        deadline_ns = self._clock.now_ns() + SLICE_NS
        return self._played.play(to_ns, lambda: self._clock.now_ns() <= deadline_ns)

    def _at_ns(self) -> int:
        if self._since_ns is None:
            return self._from_ns
        passed_ns = round((self._clock.now_ns() - self._since_ns) * self._speed)
        return min(self._from_ns + passed_ns, self._played.until_ns)

    def _position(self, at_ns: int, held_ns: int | None, shown_ns: int) -> str:
        """ "0:34 of 1:12 ▸ 1x", and of when the numbers are where that is another time."""
        until = self._place(self._played.until_ns)
        if self.hurries:
            return f"{self._place(shown_ns)} of {until} ▸▸ to {self._place(at_ns)}"
        where = f"{self._place(at_ns)} of {until}"
        if self.is_over:
            early = self._recording.ends_early
            return f"{where} ■ over: {early}" if early else f"{where} ■ over"
        state = f"▸ {self._speed:g}x"
        if held_ns is not None:
            where, state = f"{self._place_of_step(at_ns)} of {until}", "■ paused"
        old = at_ns - shown_ns >= STALE_NS
        return f"{where} {state}: numbers of {self._place(shown_ns)}" if old else f"{where} {state}"

    def _place(self, t_ns: int) -> str:
        return clock((t_ns - self._recording.header.begins_ns) / 1e9)

    def _place_of_step(self, t_ns: int) -> str:
        """ "0:34.07": with the hundredths, if any, for a step may be much shorter than a second."""
        hundredths = (t_ns - self._recording.header.begins_ns) // 10_000_000 % 100
        return self._place(t_ns) + (f".{hundredths:02}" if hundredths else "")

    def _own_events(self) -> list[Event]:
        """What is replayed, and what of it was passed over."""
        header = self._recording.header
        at_unix = header.started_unix + (header.begins_ns - header.started_ns) / 1e9
        at = datetime.fromtimestamp(at_unix)
        text = f"replay of {self._recording.path.name}, recorded {at:%Y-%m-%d %H:%M}"
        events = [Event(header.begins_ns, None, text, "recording")]
        if (passed_ns := self._played.passed_ns) is not None:
            since, until = map(self._place, passed_ns)
            text = f"passed over {since} to {until}: judged every {FAR_EVERY_NS // 10**9} s there"
            events.append(Event(passed_ns[1], None, text, "recording"))
        return events
