"""The publisher's work: the ring's new marks to whoever watches, as bytes. On its own thread.

Nothing is worked out here: the monitor makes steps of the marks. Never touches CUDA, and imports
nothing once it runs: a fork would inherit the lock of that import.
"""

import os
import sys
from collections import deque
from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Final

from . import clock
from .circuit_breaker import CircuitBreaker
from .encoding import (
    decode_request,
    encode_bye,
    encode_dump,
    encode_greeting,
    encode_marks,
    settings_row,
)
from .endpoint import Endpoint
from .figures import resident_bytes, uses_accelerator
from .identity import Identity
from .loaders import look_at
from .mark_feed import MarkFeed, Rare
from .on_request import QUESTIONS, OnRequest
from .peers import NOBODY, PPM, Dumps, Peer, Peers, Tracer
from .recorder import ENTRIES, Recorder
from .socket_place import is_key, remove_leftovers
from .state_page import StatePage
from .watched_looks import WatchedLooks
from .wire import marks, page

if TYPE_CHECKING:
    from .device.rate_limit import RateLimiter
    from .device.stamper import Report

TURN_S: Final = 0.25
"""While somebody watches: a screen draws four frames a second."""
UNWATCHED_TURN_S: Final = 1.0
SHORTEST_TURN_S: Final = 0.05
BEGINNING_TURN_S: Final = 0.1
BEGINNING_NS: Final = 1_000_000_000
"""For so long after somebody has come turns are that short: the first steps on the device's clock
come with the second turn, and a verdict waits for them. That is six turns more for each who comes.
"""
PEEK_S: Final = 0.2
"""Until it is seen that a loop has begun to put more marks than the last turn let expect: half of
what the recorder holds comes in that time at 6,800 steps of six marks a second."""
MOST_REPORTS: Final = 600
"""What the device reported lately: for a monitor that comes."""
REPORTS: Final = ("passed", "aligned", "allocated")
SLOW_LOOK_NS: Final = 1_000_000_000
MEND_NS: Final = 5_000_000_000
REQUESTS_A_TURN: Final = 64


class Server:
    """Everything the publisher's thread owns."""

    def __init__(
        self, recorder: Recorder, state_page: StatePage, breaker: CircuitBreaker, identity: Identity
    ) -> None:
        self._recorder = recorder
        self._page = state_page
        self._breaker = breaker
        self._identity = identity
        self._rate_limiter: RateLimiter | None = None
        """None until an accelerator is in use."""
        self._peers = Peers()
        self._tracer = Tracer()
        self._dumps = Dumps(recorder)
        self._on_request = OnRequest(recorder, identity.endpoint)
        self._refused = 0
        """Requests that were none."""
        self._endpoint: Endpoint | None = None
        self._looks = WatchedLooks(recorder)
        self._feed = MarkFeed(recorder, state_page)
        self._reports: deque[Report] = deque(maxlen=MOST_REPORTS)
        self._switched: deque[tuple[int, bool]] = deque(maxlen=MOST_REPORTS)
        self._fresh: tuple[list[Report], list[tuple[int, bool]]] = ([], [])
        """Of this turn: what the device reported, and where its stamping began and ended."""
        self._rss_bytes: int | None = None
        self._file_bytes: int | None = None
        self._next_look_ns = 0
        self._next_mend_ns = 0
        self._greeted_ns = -BEGINNING_NS
        """When somebody last began to watch."""
        self._turned_ns = 0

    @property
    def turn_s(self) -> float:
        """Until the next turn: the recorder has room for four times of what comes meanwhile, and
        what a turn takes in hand stays below 0.4 MB, which `malloc` would not give back."""
        longest = self._on_request.turn_s(self._usual_turn_s)
        if self._feed.marks_per_s * longest <= ENTRIES / 8:
            return longest
        return max(SHORTEST_TURN_S, ENTRIES / 8 / self._feed.marks_per_s)

    @property
    def _usual_turn_s(self) -> float:
        if not self._peers:
            return UNWATCHED_TURN_S
        begins = self._turned_ns - self._greeted_ns < BEGINNING_NS
        return BEGINNING_TURN_S if begins else TURN_S

    def open(self) -> None:
        """Bind the socket."""
        if self._identity.endpoint is None:
            return
        path = self._identity.endpoint.removeprefix("ipc://")
        self._endpoint = Endpoint(path)
        self._hold(self._endpoint)
        remove_leftovers(os.path.dirname(path))

    def turn(self, last: bool = False) -> None:
        """One wake-up: answer, publish. The last one as the probe leaves."""
        now_ns = clock.now_ns()
        recorder = self._recorder
        if last:
            recorder.end()
        self._look_for_trainer()
        (since_ns, kind), words = recorder.newest(), self._page.words
        self._feed.put(now_ns)
        words[page.WORD_HEARTBEAT] = now_ns
        words[page.WORD_OPEN] = page.pack_open(kind, since_ns)
        words[page.WORD_STEPS] = self._feed.count.steps
        self._turned_ns = now_ns
        if self._endpoint is None:
            self._take_device(now_ns)
            return
        self._look(now_ns)
        self._answer(now_ns)
        self._peers.drop_silent(now_ns, self._endpoint.pid_of)
        self._tracer.allow(self._peers.newest_pid)
        recorder.watched = bool(self._peers)
        self._take_device(now_ns)  # whoever has just come has steps stamped from now on
        recorder.notes.turn()
        for identity, peer in self._peers.items():
            self._send_marks(identity, peer, now_ns)
        self._on_request.drop_left(self._endpoint.pid_of)
        for identity, answer in self._on_request.turn(now_ns):
            self._endpoint.send(identity, answer)
        self._rss_bytes = self._file_bytes = None

    def close(self, reason: str) -> None:
        """Say good-bye to whoever watches and take the socket away."""
        self._tracer.allow(NOBODY)
        self._on_request.close()
        if self._endpoint is None:
            return
        bye = encode_bye(reason, self._feed.count.steps)
        for identity, _ in self._peers.items():
            self._endpoint.send(identity, bye)
        self._endpoint.close()

    def rest(self, stop: Event) -> None:
        """Until the next turn is due, the recorder half full, somebody comes, or `stop` set and
        `wake` called."""
        began_s, left_s = monotonic(), self.turn_s
        while left_s > 0 and not stop.is_set():
            self.wait(stop, min(left_s, PEEK_S))
            left_s -= PEEK_S
            if self._recorder.has_put(ENTRIES // 4, self._feed.newest_ns):
                return
            if self._endpoint is not None and self._endpoint.has_newcomer:
                # Who connects again and again makes no more turns than these.
                stop.wait(max(0.0, began_s + SHORTEST_TURN_S - monotonic()))
                return

    def wait(self, stop: Event, seconds: float) -> None:
        """So long, or until `stop` is set and `wake` called: serve the connections."""
        until_s = monotonic() + seconds
        if self._endpoint is not None and not stop.is_set():
            self._endpoint.serve(round(seconds * 1e9))
            if self._endpoint.has_newcomer:
                return
        if (left_s := until_s - monotonic()) > 0:
            stop.wait(left_s)

    def wake(self) -> None:
        """End `wait`. Called by the thread that has set `stop`."""
        if self._endpoint is not None:
            self._endpoint.wake()

    def abandon(self) -> None:
        """In a forked child: let go of the parent's sockets."""
        if self._endpoint is not None:
            self._endpoint.abandon()

    def _look_for_trainer(self) -> None:
        """A worker of Ray trains in a thread, and is killed a second after that has ended."""
        recorder = self._recorder
        is_quiet = recorder.newest()[0] <= self._feed.newest_ns
        if is_quiet and recorder.owner and recorder.owner not in sys._current_frames():
            recorder.lose_owner()

    def _take_device(self, now_ns: int) -> None:
        """What the device marks have reported since the last turn; and the next turn's grant."""
        rate_limiter = self._rate_limiter
        if rate_limiter is None:
            if self._recorder.on and not self._recorder.stamps and uses_accelerator():
                self._recorder.stamp_with(self._first_stamp)
            return
        fresh = list(rate_limiter.reports())
        switched: list[tuple[int, bool]] = []
        behind_ns = max((peer.behind_ns for _, peer in self._peers.items()), default=0)
        ppm = max((peer.device_ppm for _, peer in self._peers.items()), default=PPM)
        rate_limiter.turn(now_ns, self._feed.count.steps, behind_ns, ppm)
        stamper = rate_limiter.stamper
        while stamper is not None and stamper.switched:
            switched.append(stamper.switched.popleft())
        self._reports.extend(fresh)
        self._switched.extend(switched)
        self._fresh = fresh, switched

    def _first_stamp(self, _: int) -> None:
        """On the training thread, which cannot fork while it imports."""
        from .device.rate_limit import RateLimiter

        self._recorder.stamp_with(None)
        self._rate_limiter = RateLimiter(self._recorder)

    def _look(self, now_ns: int) -> None:
        if self._recorder.watched and self._feed.sees_padding:
            self._recorder.look_with(look_at)  # its share varies from batch to batch
        if now_ns >= self._next_look_ns:
            self._next_look_ns = now_ns + SLOW_LOOK_NS
            self._rss_bytes, self._file_bytes = resident_bytes()
            self._recorder.look_with(look_at)
            if self._recorder.watched:
                self._looks.ask()
            self._describe(self._identity.endpoint, self._identity.fault)
        if now_ns >= self._next_mend_ns:
            self._next_mend_ns = now_ns + MEND_NS
            assert self._endpoint is not None
            self._hold(self._endpoint)

    def _answer(self, now_ns: int) -> None:
        assert self._endpoint is not None
        for identity, frame in self._endpoint.receive(REQUESTS_A_TURN):
            try:
                request = decode_request(frame)
            except ValueError:
                self._refused += 1  # not ours, or of a version with other requests
                continue
            if request == "leave":
                self._peers.left(identity)
            elif request == "stacks":
                self._dump(identity, now_ns)
            elif isinstance(request, QUESTIONS):
                # Who asks need not watch: a monitor of another rank of the job asks as well.
                if is_key(request.key, self._endpoint.key):
                    self._on_request.ask(identity, request)
                else:
                    self._refused += 1
            else:
                pid = self._endpoint.pid_of(identity)
                if pid is None or not is_key(request.key, self._endpoint.key):
                    self._refused += 1
                    continue
                peer = self._peers.subscribed(identity, pid, now_ns)
                peer.behind_ns, peer.device_ppm = request.behind_ns, request.device_ppm
                if request.count_flops:
                    self._on_request.count_flops()
                if not peer.greeted:
                    self._greet(identity, peer, request.history, now_ns)

    def _dump(self, identity: bytes, now_ns: int) -> None:
        assert self._endpoint is not None
        if (dump := self._dumps.for_peer(self._peers.known(identity), now_ns)) is not None:
            self._endpoint.send(identity, encode_dump(dump))

    def _greet(self, identity: bytes, peer: Peer, history: bool, now_ns: int) -> None:
        assert self._endpoint is not None
        peer.greeted = True
        self._greeted_ns = self._next_look_ns = now_ns
        peer.next = max(0, self._feed.until - (marks.RING if history else 1))
        self._endpoint.send(identity, encode_greeting(self._identity, now_ns))

    def _send_marks(self, identity: bytes, peer: Peer, now_ns: int) -> None:
        assert self._endpoint is not None
        recorder, first, rare_before = self._recorder, peer.sequence == 0, peer.rare
        since, until = max(peer.next, self._feed.until - marks.RING), self._feed.until
        peer.sequence, peer.next = peer.sequence + 1, until
        rare = [one for one in self._feed.rare if one[0] > peer.rare]
        loaders = [(n, row, grad, at) for n, kind, at, (row, grad) in _of(marks.LOADER, rare)]
        if first and rare:
            loaders = [one for one in self._feed.loaders.values() if one[0] < rare[0][0]] + loaders
        peer.rare = rare[-1][0] if rare else peer.rare
        reports, switched = self._fresh
        if first:
            reports, switched = list(self._reports), list(self._switched)
        stamper = rate_limiter.stamper if (rate_limiter := self._rate_limiter) is not None else None
        mark_ns, wrapper_ns = self._looks.costs()
        head = (
            peer.sequence,
            now_ns,
            until,
            self._feed.count.steps,
            peer.names_to_send(recorder.names),
            loaders,
            [(n, seen) for n, _, _, seen in _of(marks.BATCH, rare)],
            self._rss_bytes,
            self._file_bytes,
            mark_ns,
            self._breaker.fault,
            settings_row(peer.settings_to_send(self._looks.reading())),
            self._refused,
            switched,
            *([row for of, row in reports if of == kind] for kind in REPORTS),
            rate_limiter.cost_ns if rate_limiter is not None and stamper is not None else None,
            stamper.dropped if stamper is not None else 0,
            *("", recorder.notes.to_send(first)),  # the marks' own bytes follow the line
            wrapper_ns,
        )
        if not self._endpoint.send(identity, encode_marks(head), *self._page.marks(since, until)):
            peer.lost(rare_before)

    def _hold(self, endpoint: Endpoint) -> None:
        """See to it that there is a socket. Where that fails, the page has the reason."""
        now: tuple[str | None, str | None] = f"ipc://{endpoint.path}", None
        try:
            endpoint.hold()
        except OSError as error:
            now = None, f"no socket: {error}"
        self._describe(*now)

    def _describe(self, endpoint: str | None, fault: str | None) -> None:
        """Rewrite the hello where it has changed: with torch, or with the group of ranks, too."""
        before, fault = self._identity, self._breaker.fault or fault
        self._identity = before.but(endpoint=endpoint, fault=fault)
        if vars(self._identity) == vars(before):
            return
        self._page.write_hello(self._identity.as_json(page.HELLO_BYTES))


def _of(kind: int, rare: list[Rare]) -> list[Rare]:
    return [one for one in rare if one[1] == kind]


def serve(server: Server, stop: Event, reason: Callable[[], str]) -> None:
    """Take turns until `stop` is set."""
    server.open()
    while not stop.is_set():
        server.rest(stop)
        if not stop.is_set():
            server.turn()
    server.turn(last=True)
    server.close(reason())
