"""The far side: collects beside the run, and hands on what it sees over stdin and stdout.

It ends when the near side says so or has ended, unless that has asked it to keep what it collects
for a minute (`Watch.keep_s`).
"""

import os
import secrets
import select
from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from .. import clock as real_clock
from ..discovery.command_lines import environ_of
from ..errors import GpuwatchError
from ..model.observations import TargetEnded
from ..recording.format import Entry, Header
from ..recording.tape import Tape
from . import frames
from .backlog import Backlog
from .coding import EntryEncoder
from .frames import (
    AskRoster,
    Frame,
    Hosts,
    Kind,
    LinkError,
    Listing,
    Watch,
    Watching,
    decoded,
    frame,
    message,
)
from .node import NodeReports, packed
from .roster import from_ras, from_slurm
from .wire import Door, DoorError, Wire, knock, relay

if TYPE_CHECKING:  # the near side has its answer before these are loaded
    from ..session.collector import Clock
    from ..session.live import Connection

SEND_NS: Final = 250_000_000
"""Between two frames of entries: a screen draws four a second."""
RANKS_NS: Final = 1_000_000_000
"""Where only ranks are reported, which are read once a second."""
FIRST_NS: Final = 50_000_000
"""And at first, for `SOON_NS`: somebody waits for the first picture."""
SOON_NS: Final = 2_000_000_000
SILENT_NS: Final = 10_000_000_000
"""The near side sends something every second. After so long without a word it has ended, though
nobody has closed the link: a cable was pulled, a laptop put to sleep."""
UNASKED_NS: Final = 60_000_000_000
"""Before it is asked to watch anything: somebody is choosing."""
LAST_WORDS_NS: Final = 2_000_000_000
"""After the run has ended: its last messages are still on their way."""
LEAVE_S: Final = 1.0
"""Longest that the end waits for a source in the middle of a poll, and for the link."""


class Watched(NamedTuple):
    """A process that an agent collects from."""

    pid: int
    header: Header
    notes: tuple[str, ...]
    """Why it is another process than the one asked for."""
    connect: "Callable[[], Connection]"
    """Loads what watching needs; called on the thread that collects."""


Find = Callable[[Watch, Tape, NodeReports | None], Watched]
"""Raises a GpuwatchError that says why where the process cannot be watched."""


class Agent:
    """Serves one link, and those that come back to it."""

    def __init__(
        self,
        find: Find,
        listing: Callable[[], Listing],
        hello: frames.LinkHello,
        prepare: Callable[[], object] = lambda: None,
        clock: "Clock" = real_clock,
    ) -> None:
        """`prepare` loads what watching needs, beside what the near side asks first."""
        self._prepare = prepare
        self._find = find
        self._listing = listing
        self._hello = hello
        self._clock = clock

    def serve(self, into: int, out: int) -> None:
        """Until the near side leaves, or the run ends. Never raises for what the near side does."""
        near = Wire(into, out)
        loading = Thread(target=self._prepare, name="loading", daemon=True)
        try:
            near.send(frames.GREETING + message(Kind.HELLO, self._hello))
            loading.start()
            watch = self._asked(near)
            if watch is None:
                return
            agent = knock(watch.resume.token) if watch.resume is not None else None
            if agent is not None:
                relay(near, into, out, agent, message(Kind.WATCH, watch))
                return
            self._watch(near, watch)
            near.drain(LEAVE_S)
        except (LinkError, OSError):
            pass  # whoever is there gets nothing that it would misread
        finally:
            if loading.ident is not None:
                loading.join()  # what is half loaded is not torn down

    def _asked(self, near: Wire) -> Watch | None:
        """What to watch; lists are answered on the way. None where the near side leaves."""
        received_ns = self._clock.now_ns()
        while self._clock.now_ns() - received_ns < UNASKED_NS:
            came = near.poll(1.0)
            if came is None:
                return None
            for one in came:
                received_ns = self._clock.now_ns()
                if one.kind == Kind.LIST:
                    near.send(message(Kind.LISTING, self._listing()))
                elif one.kind == Kind.ROSTER:
                    near.send(message(Kind.HOSTS, roster_of(decoded(one.body, AskRoster).pid)))
                elif one.kind == Kind.WATCH:
                    return decoded(one.body, Watch)
                elif one.kind == Kind.BYE:
                    return None
                else:
                    self._pong(near, one)
        return None

    def _watch(self, near: Wire, watch: Watch) -> None:
        kinds = ("pending",) if watch.ranks_alone else watch.kinds
        tape, backlog = Tape(watch.whole_argv), Backlog(kinds)
        reports = NodeReports(watch.node_every) if watch.node_every > 0 else None
        collecting = _Collecting(tape, backlog, reports, self._clock)
        try:
            watched = self._find(watch, tape, reports)
        except GpuwatchError as error:
            fault = frames.Fault(
                what=error.what, why=error.why, fix=error.fix, exit_code=error.exit_code
            )
            near.send(message(Kind.FAULT, fault))
            return
        token, door = "", None
        if watch.keep_s > 0:
            token = secrets.token_hex(8)
            try:
                door = Door(token)
            except (DoorError, OSError):
                token = ""  # then a lost link is lost
        collecting.start(watched.connect)
        try:
            self._serve_links(near, watch, watched, collecting, token, door)
        finally:
            collecting.stop()
            if door is not None:
                door.close()

    def _serve_links(
        self,
        near: Wire,
        watch: Watch,
        watched: Watched,
        collecting: "_Collecting",
        token: str,
        door: Door | None,
    ) -> None:
        """The first link, and each that comes back."""
        link: Wire | None = near
        resumed = False
        while link is not None:
            answer = Watching(
                pid=watched.pid,
                header=watched.header,
                token=token,
                now_ns=self._clock.now_ns(),
                notes=watched.notes,
                resumed=resumed,
            )
            came: Wire | None = None
            is_over = False
            try:
                link.send(message(Kind.WATCHING, answer))
                came, is_over = self._talk(link, watch, collecting, door)
                if is_over:
                    link.drain(LEAVE_S)
            except (OSError, LinkError):
                pass  # lost
            if is_over or door is None:
                return
            if link is not near:
                link.close()
            link, watch = self._next_link(came, watch, door)
            if link is not None and watch.resume is not None:
                collecting.backlog.resume_after(watch.resume.after)
                resumed = True

    def _talk(
        self, link: Wire, watch: Watch, collecting: "_Collecting", door: Door | None
    ) -> tuple[Wire | None, bool]:
        """Send what is seen, as fast as it is asked for. Ends with who came through the door in
        the place of this link, if anybody, and with whether nothing more is to be sent at all.

        Raises OSError or LinkError where the link is lost.
        """
        encoder, most = EntryEncoder(), max(1, min(watch.window, 64))
        credit, every_ns = most, RANKS_NS if watch.ranks_alone else SEND_NS
        began_ns = received_ns = next_ns = self._clock.now_ns()
        while True:
            wait_s = (next_ns - self._clock.now_ns()) / 1e9
            came = link.poll(wait_s, None if door is None else door.fileno())
            now_ns = self._clock.now_ns()
            if came is None or now_ns - received_ns > SILENT_NS:
                return None, False
            if came:
                received_ns = now_ns
            for one in came:
                if one.kind == Kind.BYE:
                    return None, True
                if one.kind == Kind.CREDIT and len(one.body) == frames.CREDIT.size:
                    credit = min(most, credit + frames.CREDIT.unpack(one.body)[0])
                else:
                    self._pong(link, one)
            if door is not None and (other := door.accept()) is not None:
                return other, False
            if now_ns < next_ns:
                continue
            soon = now_ns - began_ns < SOON_NS
            next_ns = now_ns + (FIRST_NS if soon else every_ns)
            if soon and collecting.backlog.is_empty:
                continue
            while credit and link.is_drained:
                credit -= 1
                self._send_entries(link, encoder, collecting)
                if collecting.backlog.is_empty:
                    break
            while credit and link.is_drained and (report := collecting.next_report()) is not None:
                credit -= 1
                link.send(frame(Kind.NODE, report))
            if (fault := collecting.fault) is not None:
                link.send(message(Kind.FAULT, frames.Fault(what=fault)))
                return None, True
            if collecting.is_over(now_ns) and collecting.backlog.is_empty and link.is_drained:
                link.send(frame(Kind.OVER))
                return None, True

    def _send_entries(self, link: Wire, encoder: EntryEncoder, collecting: "_Collecting") -> None:
        backlog = collecting.backlog
        found = backlog.next()
        body = encoder.encode(found.entries, found.last, self._clock.now_ns(), backlog.left_out)
        link.send(frame(Kind.ENTRIES, body))

    def _next_link(self, came: Wire | None, watch: Watch, door: Door) -> tuple[Wire | None, Watch]:
        """Who comes through the door in time, with what is asked for; None where nobody does."""
        until_ns = self._clock.now_ns() + round(watch.keep_s * 1e9)
        while (left_ns := until_ns - self._clock.now_ns()) > 0:
            if came is None:
                came = _wait(door, left_ns / 1e9)
                continue
            try:
                asked = self._asked(came)
            except (OSError, LinkError):
                asked = None
            if asked is not None:
                return came, asked
            came.close()
            came = None
        return None, watch

    def _pong(self, near: Wire, one: Frame) -> None:
        """Answer a ping. Frames of kinds that a newer side has are left alone."""
        if one.kind == Kind.PING and len(one.body) == frames.PING.size:
            (near_ns,) = frames.PING.unpack(one.body)
            body = frames.PONG.pack(near_ns, self._clock.now_ns(), self._clock.now_unix())
            near.send(frame(Kind.PONG, body))


def _wait(door: Door, limit_s: float) -> Wire | None:
    select.select([door], [], [], limit_s)
    return door.accept()


def roster_of(pid: int) -> Hosts:
    """By NCCL, or by SLURM."""
    found = from_ras(pid) or from_slurm(environ_of(pid))
    return Hosts() if found is None else Hosts(hosts=found.hosts, source=found.source)


class _Collecting:
    """The collector on its thread, and what it has seen."""

    def __init__(
        self, tape: Tape, backlog: Backlog, reports: NodeReports | None, clock: "Clock"
    ) -> None:
        self.backlog = backlog
        self.reports = reports
        self.fault: str | None = None
        """A mistake of ours that ended the thread."""
        self._tape = tape
        self._clock = clock
        self._ended_ns: int | None = None
        self._stop = Event()
        self._thread: Thread | None = None
        tape.hand_over(self._take)

    def start(self, connect: "Callable[[], Connection]") -> None:
        """Collect from now on."""

        def run() -> None:
            from ..session.collector import Collector

            try:
                session, sources, *_ = connect()
                watching = Collector(sources, session, lambda _: None, lambda: False, self._clock)
                watching.run(self._stop)
            except GpuwatchError as error:
                self.fault = error.what
            except BaseException as error:  # the link reports it
                self.fault = f"the agent failed: {type(error).__name__}: {error}"

        self._thread = Thread(target=run, name="collector", daemon=True)
        self._thread.start()

    def is_over(self, now_ns: int) -> bool:
        """The run has ended, and its last messages have come."""
        return self._ended_ns is not None and now_ns - self._ended_ns > LAST_WORDS_NS

    def next_report(self) -> bytes | None:
        """The body of the oldest one that waits."""
        report = self.reports.take() if self.reports is not None else None
        return None if report is None else packed(report)

    def stop(self) -> None:
        """Let go of the run."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LEAVE_S)

    def _take(self, entry: Entry) -> None:
        if isinstance(entry, TargetEnded) and self._ended_ns is None:
            self._ended_ns = entry.t_ns
        self.backlog.take(entry)


def descriptors() -> tuple[int, int]:
    """Stdin and stdout for the link alone: what a library prints by mistake goes to stderr."""
    into, out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return into, out
