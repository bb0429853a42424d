"""A process on another machine, watched through its agent, however often the link breaks."""

from collections import deque
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Final, Protocol

from msgspec.structs import replace

from .. import clock as real_clock
from ..errors import DISTRIBUTION, version_of
from ..model.link import LinkStatus
from ..model.observations import AnyObservation
from ..model.snapshot import Event as RunEvent
from ..recording.chunks import KINDS
from ..recording.format import LATEST_NS, Looked, Past
from ..session.collector import Clock
from ..verdict.findings import Signal
from . import frames
from .coding import EntryDecoder
from .far_clock import FarClock
from .frames import Fault, Frame, Kind, LinkError, Resume, Watch, Watching, decoded, frame, message
from .line import Line, LinkLostError, NoGpuwatchError, RefusedError
from .node import NodeReport, unpacked
from .places import Place

KEEP_S: Final = 60.0
"""An agent collects on for so long after its link was lost."""
PING_NS: Final = 1_000_000_000
SILENT_NS: Final = 6_000_000_000
"""An agent says something four times a second; over a link of 256 kbit/s with 1 % of its packets
lost the longest pause that was seen was 1.9 s."""
FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 10.0
ANSWER_S: Final = 20.0
"""What a host may take to begin watching: gpuwatch is loaded there, from a slow disk perhaps."""
MOST_BROKEN: Final = 3
"""Times in a row that an agent may send what none sends."""
HELD_NS: Final = 30_000_000_000
"""A link that worked for so long before begins a new row."""
MOST_EVENTS: Final = 50
MOST_REPORTS: Final = 16
RATE_NS: Final = 10_000_000_000
"""Over which bytes a second are a mean."""


class Connects(Protocol):
    """Makes a line, without asking anybody."""

    def __call__(self) -> Line:
        """Raises LinkLostError, LinkError, NoGpuwatchError or RefusedError."""


@dataclass(frozen=True, slots=True)
class Began:
    """A process over there that is watched."""

    line: Line
    watch: Watch
    watching: Watching


def watch_for(
    pid: int,
    *,
    stacks: bool,
    whole_argv: bool,
    keep_s: float,
    node_every: int = 0,
    ranks_alone: bool = False,
) -> Watch:
    """The request, with the kinds of entries that this version knows."""
    return Watch(
        node_every=node_every,
        ranks_alone=ranks_alone,
        protocol=frames.PROTOCOL,
        pid=pid,
        stacks=stacks,
        whole_argv=whole_argv,
        keep_s=keep_s,
        kinds=tuple(KINDS),
    )


def begin_watching(line: Line, watch: Watch) -> Began:
    """Raises LinkLostError, LinkError, or RefusedError with what the agent says."""
    line.send(message(Kind.WATCH, watch))
    found = line.wait_for((Kind.WATCHING, Kind.FAULT), ANSWER_S)
    if found.kind == Kind.FAULT:
        raise refused(decoded(found.body, Fault))
    watching = decoded(found.body, Watching)
    header = watching.header
    if not 0 <= header.started_ns <= header.begins_ns < LATEST_NS:
        raise LinkError("a header that makes no sense")
    return Began(line, watch, watching)


def refused(fault: Fault) -> RefusedError:
    """The agent's error as ours."""
    error = RefusedError(*map(frames.clean, (fault.what, fault.why, fault.fix)))
    error.exit_code = fault.exit_code if 0 < fault.exit_code < 64 else 1
    return error


def version_note(line: Line) -> str:
    """What to say where the two sides have different versions; "" where they have the same."""
    here, there = version_of(DISTRIBUTION), frames.clean(line.hello.gpuwatch)
    if here == there:
        return ""
    return (
        f"{line.place.name} has gpuwatch {there}, this is {here}: what only one knows is left out"
    )


class Link:
    """Reads on a thread of its own; the collector takes what has come."""

    def __init__(
        self, began: Began, again: Connects, far: FarClock, near: Clock = real_clock
    ) -> None:
        self.watching = began.watching
        self.left_out = 0
        """Rows that the link was too slow for."""
        self._place = began.line.place
        self._watch = began.watch
        self._line: Line | None = began.line
        self._again = again
        self._far = far
        self._near = near
        self._lock = Lock()
        """Around what has come."""
        self._come: deque[list[AnyObservation]] = deque()
        self._reports: deque[NodeReport] = deque(maxlen=MOST_REPORTS)
        self._untaken = 0
        """Frames that were not asked for again yet."""
        self._last = 0
        """Number of the last entry that arrived."""
        self._lost_ns: int | None = None
        self._why = ""
        self._broken = 0
        self._begun_ns = 0
        """When the line was made that works now."""
        self.given_up: str | None = None
        """Why nothing more will come, where that is not the end of the run."""
        self._rates: deque[tuple[int, int]] = deque()
        self._events: tuple[RunEvent, ...] = ()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="link", daemon=True)
        far.begin(began.watching.now_ns)

    def start(self) -> None:
        """Read from now on, if it does not yet."""
        if self._thread.ident is None:
            self._thread.start()

    def take(self) -> list[AnyObservation]:
        """What has come since the last time; as much again may then be sent."""
        with self._lock:
            come, self._come = self._come, deque()
            taken, self._untaken = self._untaken, 0
        line = self._line
        if taken and line is not None:
            try:
                line.send(frame(Kind.CREDIT, frames.CREDIT.pack(taken)))
            except LinkLostError:
                pass  # the thread finds out by itself
        return [one for few in come for one in few]

    def take_reports(self) -> list[NodeReport]:
        """Of the ranks of a host, what has come; after `take`."""
        with self._lock:
            found, self._reports = list(self._reports), deque(maxlen=MOST_REPORTS)
        return found

    @property
    def place(self) -> Place:
        """Where it leads."""
        return self._place

    @property
    def place_name(self) -> str:
        """The same for a person."""
        return self._place.name

    @property
    def clock_ahead_ns(self) -> int:
        """The clock there less the clock here."""
        return self._far.free_ns() - self._near.now_ns()

    def close(self) -> None:
        """Leave: nothing is kept over there."""
        self._stop.set()
        line, self._line = self._line, None
        if line is not None:
            line.close()

    @property
    def events(self) -> tuple[RunEvent, ...]:
        """What became of the link."""
        return self._events

    def status(self) -> LinkStatus:
        """As of now."""
        now_ns, best = self._near.now_ns(), self._far.best
        lost_ns = self._lost_ns
        return LinkStatus(
            place=self._place.name,
            lost_s=None if lost_ns is None else max(0, now_ns - lost_ns) / 1e9,
            why=self._why,
            round_trip_ms=None if best is None else best.length_ns / 1e6,
            ahead_ms=None if best is None else best.ahead_unix_s * 1e3,
            uncertain_ms=None if best is None else best.length_ns / 2e6,
            bytes_s=self._bytes_s(),
            left_out=self.left_out,
        )

    def _run(self) -> None:
        while not self._stop.is_set() and (line := self._line) is not None:
            try:
                if self._read(line):
                    self._far.run_free()
                    return
            except (LinkLostError, LinkError) as error:
                if self._stop.is_set():
                    return
                self._lose(error)
                line.abandon()
                if not self._take_up_again():
                    if self.given_up is not None:
                        self._report(self.given_up)
                    return

    def _read(self, line: Line) -> bool:
        """Whether the run has ended. Raises LinkLostError or LinkError where the link is lost."""
        decoder = EntryDecoder()
        received_ns = ping_ns = self._begun_ns = self._near.now_ns()
        while not self._stop.is_set():
            now_ns = self._near.now_ns()
            if now_ns >= ping_ns:
                ping_ns = now_ns + PING_NS
                line.send(frame(Kind.PING, frames.PING.pack(now_ns)))
            found = line.read(min(0.25, (ping_ns - now_ns) / 1e9))
            if found is None:
                if self._near.now_ns() - received_ns > SILENT_NS:
                    raise line.give_up(f"nothing has come for {SILENT_NS // 10**9} s")
                continue
            received_ns = self._near.now_ns()
            if found.kind == Kind.OVER:
                return True
            self._take_frame(found, decoder, line)
        return False

    def _take_frame(self, found: Frame, decoder: EntryDecoder, line: Line) -> None:
        if found.kind == Kind.ENTRIES:
            began_ns = self._near.now_ns()
            entries = decoder.decode(found.body)
            took_s = (self._near.now_ns() - began_ns) / 1e9
            with self._lock:
                self._count_untaken()
                self._come.append(
                    [one for one in entries.entries if not isinstance(one, Looked | Past)]
                )
            self._last = max(self._last, entries.last)
            self.left_out = entries.left_out
            self._far.reached(entries.now_ns)
            self._count(line.bytes_in)
            if took_s > 0.05:  # of an honest agent a frame takes some 2 ms
                self._stop.wait(took_s)
        elif found.kind == Kind.NODE:
            report = unpacked(found.body)
            with self._lock:
                self._count_untaken()
                self._reports.append(report)
        elif found.kind == Kind.PONG and len(found.body) == frames.PONG.size:
            self._far.answered(*frames.PONG.unpack(found.body))
        elif found.kind == Kind.FAULT:
            raise LinkLostError(frames.clean(decoded(found.body, Fault).what))

    def _count_untaken(self) -> None:
        self._untaken += 1
        if self._untaken > 2 * frames.WINDOW:
            raise LinkError("it sends more than it was asked for")

    def _lose(self, error: Exception) -> None:
        now_ns = self._near.now_ns()
        if now_ns - self._begun_ns > HELD_NS:
            self._broken = 0
        self._broken += isinstance(error, LinkError)
        self._lost_ns, self._why = now_ns, frames.clean(str(error))
        self._report(f"link to {self._place.name} lost: {self._why}")

    def _take_up_again(self) -> bool:
        """Try until it works; whether there is any use in trying."""
        pause_s = FIRST_RETRY_S
        while self._broken < MOST_BROKEN and not self._stop.wait(pause_s):
            pause_s = min(2 * pause_s, LONGEST_RETRY_S)
            line: Line | None = None
            try:
                line = self._again()
                resume = Resume(token=self.watching.token, after=self._last)
                wanted = replace(self._watch, pid=self.watching.pid)
                if self.watching.token:
                    wanted = replace(wanted, resume=resume)
                began = begin_watching(line, wanted)
            except (RefusedError, NoGpuwatchError) as error:
                if line is not None:
                    line.abandon()
                if isinstance(error, RefusedError) and line is not None:
                    self.given_up = f"{self._place.name}: {error.what}"
                    return False
                self._why = frames.clean(error.what)
            except (LinkLostError, LinkError) as error:
                if line is not None:
                    line.abandon()
                self._broken += isinstance(error, LinkError)
                self._why = frames.clean(str(error))
            else:
                self._go_on(began)
                return not self._stop.is_set()
        if not self._stop.is_set():
            self.given_up = f"{self._place.name} does not speak as an agent does: {self._why}"
        return False

    def _go_on(self, began: Began) -> None:
        away_s = (self._near.now_ns() - (self._lost_ns or 0)) / 1e9
        self.watching = began.watching
        if began.watching.resumed:
            what = "what was missed is fetched"
        else:
            self._last = 0
            what = "its agent had ended: the probe alone knows what was missed"
        self._far.forget()
        self._report(f"link to {self._place.name} is back after {away_s:.0f} s: {what}")
        with self._lock:
            self._untaken = 0
        self._line = began.line
        self._lost_ns, self._why = None, ""
        if self._stop.is_set():
            began.line.close()

    def _report(self, text: str) -> None:
        event = RunEvent(self._far.free_ns(), None, text, "link")
        self._events = (*self._events[1 - MOST_EVENTS :], event)

    def _count(self, bytes_in: int) -> None:
        now_ns = self._near.now_ns()
        if self._rates and bytes_in < self._rates[-1][1]:
            self._rates.clear()  # another line
        self._rates.append((now_ns, bytes_in))
        while now_ns - self._rates[0][0] > RATE_NS:
            self._rates.popleft()

    def _bytes_s(self) -> float | None:
        rates = tuple(self._rates)
        if len(rates) < 2 or rates[-1][0] == rates[0][0]:
            return None
        return (rates[-1][1] - rates[0][1]) / (rates[-1][0] - rates[0][0]) * 1e9


class LinkSource:
    """What comes over a link, for a collector (`session.collector.Source`)."""

    name: Final[Signal] = "feed"
    interval_ns: Final = 100_000_000

    def __init__(self, link: Link) -> None:
        self._link = link

    def open(self) -> None:
        """Begin to read."""
        self._link.start()

    def poll(self, _: int) -> list[AnyObservation]:
        """What has come."""
        return self._link.take()

    def close(self) -> None:
        """Leave."""
        self._link.close()
