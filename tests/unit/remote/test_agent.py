"""An agent's first answers: they wait for nothing that collecting loads."""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from gpuwatch.tui.errors import NoProcessError
from gpuwatch.tui.recording.format import Header
from gpuwatch.tui.recording.tape import Tape
from gpuwatch.tui.remote.agent import Agent, Watched
from gpuwatch.tui.remote.frames import (
    GREETING,
    Fault,
    FrameReader,
    Kind,
    LinkHello,
    Listing,
    Watch,
    Watching,
    decoded,
    frame,
    message,
)
from gpuwatch.tui.remote.link import watch_for
from gpuwatch.tui.remote.node import NodeReports
from gpuwatch.tui.session.live import Connection
from tests.unit.session.making import S

HELLO = LinkHello(protocol=1, oldest=1, coding=1, gpuwatch="0", python="3", host="node1")
HEADER = Header(
    gpuwatch="0",
    probe="0",
    torch=None,
    host="node1",
    pid=7,
    script="train.py",
    started_ns=S,
    started_unix=1.8e9,
    begins_ns=S,
)


class Near:
    """The near side of an agent's pipes."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._reader = FrameReader()
        self._greeted = False

    def send(self, data: bytes) -> None:
        os.write(self._out, data)

    def wait_for(self, kind: Kind) -> bytes:
        """The body of the next frame, which is of this kind; entries beside it do not count."""
        while True:
            assert select.select([self._into], [], [], 10)[0], f"no {kind!r}"
            data = os.read(self._into, 65_536)
            assert data, f"no {kind!r}"
            if not self._greeted:
                assert data.startswith(GREETING)
                data, self._greeted = data[len(GREETING) :], True
            found = [one for one in self._reader.feed(data) if one.kind != Kind.ENTRIES]
            if found:
                (one,) = found
                assert one.kind == kind
                return one.body


class Loads:
    """What an agent loads, held back."""

    def __init__(self) -> None:
        self.go = Event()

    def prepare(self) -> None:
        assert self.go.wait(20)

    def find(self, watch: Watch, tape: Tape, reports: NodeReports | None) -> Watched:
        return Watched(watch.pid, HEADER, (), self.connect)

    def connect(self) -> Connection:
        self.prepare()
        raise NoProcessError("no process 7 any more")


@contextmanager
def serving(loads: Loads) -> Iterator[Near]:
    """An agent, until it has ended by itself."""
    to_agent, from_agent = os.pipe(), os.pipe()
    agent = Agent(loads.find, lambda: Listing(processes=(), now_unix=1.8e9), HELLO, loads.prepare)
    thread = Thread(target=agent.serve, args=(to_agent[0], from_agent[1]))
    thread.start()
    try:
        yield Near(from_agent[0], to_agent[1])
    finally:
        loads.go.set()
        os.close(to_agent[1])
        thread.join(20)
        for one in (to_agent[0], *from_agent):
            os.close(one)
    assert not thread.is_alive()


def test_what_is_asked_first_is_answered_while_the_rest_is_loaded() -> None:
    loads = Loads()
    with serving(loads) as near:
        near.wait_for(Kind.HELLO)
        near.send(frame(Kind.LIST))
        near.wait_for(Kind.LISTING)
        watch = watch_for(7, stacks=False, whole_argv=False, keep_s=0.0)
        near.send(message(Kind.WATCH, watch))
        watching = decoded(near.wait_for(Kind.WATCHING), Watching)
        assert (watching.pid, watching.header) == (7, HEADER)
        assert not loads.go.is_set()


def test_a_process_that_ends_meanwhile_is_named() -> None:
    loads = Loads()
    with serving(loads) as near:
        near.wait_for(Kind.HELLO)
        watch = watch_for(7, stacks=False, whole_argv=False, keep_s=0.0)
        near.send(message(Kind.WATCH, watch))
        near.wait_for(Kind.WATCHING)
        loads.go.set()
        assert decoded(near.wait_for(Kind.FAULT), Fault).what == "no process 7 any more"
