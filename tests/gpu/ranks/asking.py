"""The monitor's questions for collectives, asked far more often than a monitor does."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import monotonic, sleep
from typing import Any, Final

import zmq

from gpuwatch.tui.clock import now_ns
from gpuwatch.tui.messages import Collectives
from gpuwatch.tui.sources.collectives import RankLink
from tests.measuring.watcher import Watcher, watching
from tests.processes.monitored import hello_of

TURN_S: Final = 0.02


class Asking(threading.Thread):
    """Asks all ranks for entries and counters over and over, and keeps what came."""

    def __init__(self, pids: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.entries: list[Collectives] = []
        self.counters: list[Collectives] = []
        self._pids = pids
        self._done = threading.Event()

    def run(self) -> None:
        """Until asked to stop."""
        context = zmq.Context()
        hellos = {pid: hello_of(pid) for pid in self._pids}
        links = [RankLink(hello, pid, hello.uid) for pid, hello in hellos.items()]
        while not self._done.is_set():
            for link in links:
                link.ask(context, now_ns(), entries=True)
                link.ask(context, now_ns(), entries=False)
            self._done.wait(TURN_S)
            for link in links:
                for reply in link.answers():
                    (self.entries if reply.entries else self.counters).append(reply)
        for link in links:
            link.close()
        context.term()

    def stop(self) -> None:
        """Wait for the thread."""
        self._done.set()
        self.join(5)

    @property
    def readings(self) -> int:
        """Of entries, that were made; an answer may be the same one again."""
        return len({one.taken_ns for one in self.entries if not one.why_not})


@contextmanager
def watched(pids: Sequence[int]) -> Iterator[list[Watcher]]:
    """All ranks watched, so that their probes look for questions four times a second."""
    with ExitStack() as stack:
        yield [stack.enter_context(watching(pid)) for pid in pids]


@contextmanager
def asked_all_the_time(pids: Sequence[int]) -> Iterator[Asking]:
    """Watched, and asked."""
    with watched(pids):
        asking = Asking(pids)
        asking.start()
        try:
            yield asking
        finally:
            asking.stop()


def read_once(context: "zmq.Context[Any]", links: Sequence[RankLink], ahead_ns: int) -> None:
    """Ask all for the entries of one moment."""
    at_ns = now_ns() + ahead_ns
    for link in links:
        link.ask(context, at_ns, entries=True)


def arrived(links: Sequence[RankLink], limit_s: float) -> list[Collectives]:
    """The newest entries of each, once all have answered; what there is when the time is up."""
    found: dict[int, Collectives] = {}
    end_s = monotonic() + limit_s
    while len(found) < len(links) and monotonic() < end_s:
        for at, link in enumerate(links):
            for reply in link.answers():
                if reply.entries:
                    found[at] = reply
        sleep(TURN_S)
    return list(found.values())
