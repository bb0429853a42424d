"""A process on another machine as the faces see it: an ordinary live session with one source."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from .. import clock as real_clock
from ..model.snapshot import Event, Snapshot, as_ended, unseen
from ..recording.format import Header
from ..recording.tape import Tape
from ..session.collector import PUBLISH_NS, Clock
from ..session.live import Connection, LiveProvider
from ..session.session import Session
from ..verdict.engine import Engine
from .far_clock import FarClock
from .frames import clean
from .job import JobSource
from .link import Began, Connects, Link, LinkSource
from .node import NodeReport

MOST_EVENTS: Final = 50
"""As in a snapshot without the link's."""


class RemoteProvider(LiveProvider):
    """Watches through a link; records here what arrives here.

    While the link is lost the run's time stands, so nothing is judged; what is shown goes on, and
    shows that nothing is known of the time since.
    """

    def __init__(
        self,
        began: Began,
        again: Connects,
        others: Sequence[Link] = (),
        known: Mapping[str, NodeReport] | None = None,
        near: Clock = real_clock,
    ) -> None:
        """`others`: agents on the other hosts of its job, which report their ranks; `known`: what
        each host reported last, where that was to another provider before."""
        self._far = FarClock(near)
        self._link = Link(began, again, self._far, near)
        self._others = tuple(others)
        self._source: LinkSource | JobSource = LinkSource(self._link)
        if others:
            self._source = JobSource(self._link, others, self._far, known)
        header = began.watching.header
        self._pid, self._script = began.watching.pid, clean(header.script)
        first = unseen(self._pid, self._script, self._far.now_ns(), self._far.now_unix())
        super().__init__(first, self._connected, self._far)
        self._near = near
        self._since_ns = near.now_ns()
        """When it was attached to, by the clock here."""
        self._shown: tuple[Snapshot, int, Snapshot] | None = None
        """The last snapshot that was published, when it was shown, and as what."""

    @property
    def link(self) -> Link:
        """To the process that is watched."""
        return self._link

    def hand_over(self, but: Collection[str]) -> tuple[list[Link], dict[str, NodeReport]]:
        """The links to all hosts of its job but these, for another provider that shows another rank
        of it, and what is known of the ranks. This one is to be closed soon."""
        if isinstance(self._source, LinkSource):
            return [], {}
        return self._source.hand_over(but)

    def close(self) -> None:
        """Leave those links that nobody else has taken, whether they were ever read or not."""
        super().close()
        self._source.close()

    def snapshot(self) -> Snapshot:
        """The last that was published, with the state of the link."""
        published, now_ns = super().snapshot(), self._near.now_ns()
        if self._shown is not None:
            before, then_ns, shown = self._shown
            if before is published and now_ns - then_ns < PUBLISH_NS:
                return shown
        shown = self._with_link(published, now_ns)
        self._shown = published, now_ns, shown
        return shown

    def _with_link(self, snapshot: Snapshot, now_ns: int) -> Snapshot:
        link, given_up = self._link.status(), self._link.given_up
        events = snapshot.events
        if own := [event for one in (self._link, *self._others) for event in self._events_of(one)]:
            merged = sorted((*events, *own), key=lambda event: event.t_ns)
            events = tuple(merged[-MOST_EVENTS:])
        shown = replace(snapshot, status=replace(snapshot.status, link=link), events=events)
        if snapshot.status.state == "ended":
            return shown
        if link.lost_s is not None:
            late_ns = max(0, self._far.free_ns() - snapshot.t_ns)
            t_ns, t_unix = snapshot.t_ns + late_ns, snapshot.t_unix + late_ns / 1e9
            shown = replace(shown, t_ns=t_ns, t_unix=t_unix)
        if given_up is not None:
            return as_ended(shown, f"is not watched any more: {given_up}")
        return replace(shown, attached_s=(now_ns - self._since_ns) / 1e9)

    def _events_of(self, link: Link) -> tuple[Event, ...]:
        """On the clock of the first host."""
        shift_ns = self._link.clock_ahead_ns - link.clock_ahead_ns
        return tuple(replace(event, t_ns=event.t_ns + shift_ns) for event in link.events)

    def _connected(self, tape: Tape) -> Connection:
        header = self._link.watching.header
        session = Session(self._pid, self._script, header.started_ns, Engine(), tape=tape)
        return Connection(session, [self._source], partial(_header, header))


def _header(header: Header, begins_ns: int | None) -> Header:
    return msgspec.structs.replace(header, begins_ns=max(header.started_ns, begins_ns or 0))
