"""The publisher's work: marks into steps, steps to whoever watches. Runs on its own thread.

Never touches CUDA, and imports nothing once it runs: a fork would inherit the lock of that import.
"""

import os
import sys
from collections import deque
from collections.abc import Callable
from threading import Event
from time import monotonic, sleep
from typing import Final

from . import clock
from .device.governor import Governor
from .device.sampling import Sampling
from .dumps import Dumps
from .encoding import (
    AskStacks,
    Leave,
    Subscribe,
    decode_request,
    encode_batch,
    encode_bye,
    encode_dump,
    encode_greeting,
)
from .endpoint import Endpoint
from .fuse import Fuse
from .identity import Identity, torch_version
from .leftovers import remove_leftovers
from .mark_cost import mark_cost_ns
from .merging import merge_gpu_steps, merge_steps
from .peers import Peer, Peers
from .plain import FEWEST_MARKS
from .recorder import Recorder
from .resident import resident_bytes
from .rows import Batch, GpuClock, GpuMemory, GpuStep, Step
from .settings.glance import Glance
from .state_page import StatePage
from .timeline import Timeline
from .tracer import NOBODY, Tracer
from .wire import page

TURN_S: Final = 0.25
"""A turn costs 0.2 ms before the first step, 0.3 ms with a monitor to tell: the caches are cold and
the interpreter lock is held. A screen draws four frames a second."""
MARKS_A_BREATH: Final = 512
"""Marks digested before the interpreter lock is offered to the training thread: 0.2 ms of a plain
loop, 0.6 ms of another."""
ROWS_A_TURN: Final = 100
FULL: Final = 0.9
"""Of those rows: a run of plain steps ends where a batch is looked at, and leaves a shorter one."""
RESTING_MARKS: Final = 240
"""Marks a turn above which the hooks rest while nobody watches: 160 plain steps a second. Below,
all that they cost (8 us a step) is 0.13 % at most."""
REST_TURNS: Final = 9
MOST_MARKS: Final = 5_000
"""Marks a turn beyond which a watched run is sampled: steps under 0.3 ms."""
HISTORY_ROWS: Final = 2048
"""Steps that a monitor is told of when it comes: minutes of them, about a megabyte here."""
SLOW_LOOK_NS: Final = 1_000_000_000
MEND_NS: Final = 5_000_000_000
REQUESTS_A_TURN: Final = 64


class Server:
    """Everything the publisher's thread owns."""

    def __init__(
        self, recorder: Recorder, state_page: StatePage, fuse: Fuse, identity: Identity
    ) -> None:
        self._recorder = recorder
        self._page = state_page
        self._fuse = fuse
        self._identity = identity
        self._timeline = Timeline()
        self._governor = Governor(recorder, fuse.trip)
        self._sampling = Sampling()
        self._glance = Glance(recorder, fuse.trip)
        self._peers = Peers()
        self._tracer = Tracer()
        self._dumps = Dumps(recorder)
        self._refused = 0
        """Requests that were none."""
        self._history: deque[Step] = deque(maxlen=HISTORY_ROWS)
        self._gpu_history: deque[GpuStep] = deque(maxlen=HISTORY_ROWS)
        self._endpoint: Endpoint | None = None
        self._mark_cost_ns: int | None = None
        self._marks = 0
        self._newest = -1
        """Number of the newest mark at the last turn."""
        self._behind = False
        """Marks were left in the ring, and some may have fallen out: nobody was to be told."""
        self._rest_turns = 0
        self._rss_bytes: int | None = None
        self._file_bytes: int | None = None
        self._behind_ns: int | None = None
        """How far the device was behind the host at the last step that it told of."""
        self._gpu_memory: list[GpuMemory] = []
        self._gpu_clocks: list[GpuClock] = []
        self._next_look_ns = 0
        self._next_mend_ns = 0

    def open(self) -> None:
        """Bind the socket."""
        self._mark_cost_ns = mark_cost_ns()
        if self._identity.endpoint is None:
            return
        path = self._identity.endpoint.removeprefix("ipc://")
        self._endpoint = Endpoint(path)
        self._hold(self._endpoint)
        remove_leftovers(os.path.dirname(path))

    def turn(self, last: bool = False) -> None:
        """One wake-up: digest the marks, answer, publish. The last one as the run ends."""
        now_ns = clock.now_ns()
        self._look_for_trainer()
        newest, kind, since_ns, _ = self._recorder.newest()
        words = self._page.words
        words[page.WORD_HEARTBEAT] = now_ns
        words[page.WORD_OPEN] = page.pack_open(kind, since_ns)
        rows = HISTORY_ROWS if self._behind else ROWS_A_TURN
        steps = self._digest(newest, rows)
        if last:
            steps += self._timeline.finish()
        fresh = merge_steps(steps, rows)
        self._page.add_rows(fresh)
        self._history.extend(fresh)
        gpu = self._take_device(now_ns)
        self._gpu_history.extend(gpu)
        words[page.WORD_STEPS] = self._timeline.steps_by(newest + 1)
        words[page.WORD_LOST_MARKS] = self._timeline.lost_marks
        if self._endpoint is None:
            return
        self._look(now_ns)
        told = self._answer(now_ns)
        self._peers.drop_silent(now_ns)
        self._tracer.allow(self._peers.newest_pid)
        self._recorder.watched = bool(self._peers)
        if self._recorder.watched:
            self._recorder.wake()
        for identity, peer in self._peers.items():
            if identity not in told:
                self._send_batch(identity, peer, fresh, gpu, now_ns)
        self._rss_bytes = self._file_bytes = None
        self._gpu_clocks = []

    def close(self, reason: str) -> None:
        """Say good-bye to whoever watches and take the socket away."""
        self._tracer.allow(NOBODY)
        if self._endpoint is None:
            return
        bye = encode_bye(reason, self._timeline.steps)
        for identity, _ in self._peers.items():
            self._endpoint.send(identity, bye)
        self._endpoint.close()

    def wait(self, stop: Event, seconds: float) -> None:
        """Until the next turn, or until `stop` is set and `wake` called: serve the connections."""
        until_s = monotonic() + seconds
        if self._endpoint is not None and not stop.is_set():
            self._endpoint.serve(round(seconds * 1e9))
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

    # ------------------------------------------------------------------------------------------

    def _digest(self, newest: int, rows: int) -> list[Step]:
        """The steps that the ring's marks complete, plain ones in no more than about `rows`.

        Unwatched, little is worked out: what is left stays in the ring, the oldest fall out, and a
        monitor that comes is told of those that are there.
        """
        ring = self._recorder.ring
        arriving, self._newest = newest - self._newest, newest
        due = len(ring)
        if not self._recorder.watched:
            self._pace(arriving)
            due = min(due, 2 * RESTING_MARKS)
            self._behind |= due < len(ring)
        elif arriving > MOST_MARKS and not self._behind:
            for _ in range(due - MOST_MARKS):
                self._recorder.last = ring.popleft()
            due = min(due, MOST_MARKS)
        if self._behind and due:
            self._timeline.pick_up(ring[0][0])
            self._behind = due < len(ring)
        a_row = 1
        if due > rows * FEWEST_MARKS:
            a_row += int(due / (FULL * rows * FEWEST_MARKS))
        steps: list[Step] = []
        while due:
            breath = min(due, MARKS_A_BREATH)
            self._recorder.last = ring[breath - 1]
            steps += self._timeline.feed_all([ring.popleft() for _ in range(breath)], a_row)
            if due := due - breath:
                sleep(0)
        self._recorder.trained |= self._timeline.trained
        self._marks = newest + 1
        return steps

    def _look_for_trainer(self) -> None:
        """A worker of Ray trains in a thread, and is killed a second after that has ended."""
        recorder = self._recorder
        is_quiet = recorder.newest()[0] == self._newest
        if is_quiet and recorder.owner and recorder.owner not in sys._current_frames():
            recorder.lose_owner()

    def _take_device(self, now_ns: int) -> list[GpuStep]:
        """What the device marks have told since the last turn; and the next turn's grant."""
        ledger = self._timeline.ledger
        for told in self._governor.told():
            ledger.take(told, self._timeline.steps)
        rows = ledger.steps()
        self._gpu_memory, ledger.memory = ledger.memory, []
        if rows:
            self._behind_ns = rows[-1].lag_start_ns
        self._governor.turn(now_ns, self._timeline.steps, self._behind_ns)
        stamper = self._governor.stamper
        if stamper is not None:
            ledger.switched = stamper.switched
        if stamper is not None and self._recorder.watched:
            measured = sum(row.count for row in rows)
            self._gpu_clocks = self._sampling.clocks(
                now_ns, self._timeline.steps, measured, ledger, self._governor
            )
        return merge_gpu_steps(rows, ROWS_A_TURN)

    def _pace(self, arriving: int) -> None:
        """Unwatched, a run of short steps is marked in one turn of ten."""
        recorder = self._recorder
        if recorder.resting:
            self._rest_turns -= 1
            if self._rest_turns <= 0:
                recorder.wake()
        elif arriving > RESTING_MARKS:
            self._rest_turns = REST_TURNS
            recorder.rest()

    def _look(self, now_ns: int) -> None:
        if now_ns >= self._next_look_ns:
            self._next_look_ns = now_ns + SLOW_LOOK_NS
            self._rss_bytes, self._file_bytes = resident_bytes()
            if self._recorder.watched:
                self._glance.ask()
            if self._identity.torch is None and torch_version() is not None:
                self._say(self._identity.endpoint, self._identity.fault)
        if now_ns >= self._next_mend_ns:
            self._next_mend_ns = now_ns + MEND_NS
            assert self._endpoint is not None
            self._hold(self._endpoint)

    def _answer(self, now_ns: int) -> set[bytes]:
        """Hear the requests; returns who was told all of the past, what is fresh with it."""
        assert self._endpoint is not None
        told: set[bytes] = set()
        for identity, frame in self._endpoint.receive(REQUESTS_A_TURN):
            try:
                request = decode_request(frame)
            except ValueError:
                self._refused += 1  # not ours, or of a version that says things differently
                continue
            if isinstance(request, Leave):
                self._peers.left(identity)
            elif isinstance(request, Subscribe):
                peer = self._peers.heard(identity, request.pid, now_ns)
                if not peer.greeted and self._greet(identity, peer, request.history, now_ns):
                    told.add(identity)
            elif isinstance(request, AskStacks):
                self._dump(identity, now_ns)
        return told

    def _dump(self, identity: bytes, now_ns: int) -> None:
        assert self._endpoint is not None
        dump = self._dumps.for_peer(self._peers.known(identity), now_ns)
        if dump is not None:
            self._endpoint.send(identity, encode_dump(dump))

    def _greet(self, identity: bytes, peer: Peer, history: bool, now_ns: int) -> bool:
        """Say who we are; returns whether the past was told, which is done where it is wanted."""
        assert self._endpoint is not None
        peer.greeted = True
        self._endpoint.send(identity, encode_greeting(self._identity, now_ns))
        if not (history and self._history):
            return False
        self._send_batch(identity, peer, list(self._history), list(self._gpu_history), now_ns)
        return True

    def _send_batch(
        self, identity: bytes, peer: Peer, steps: list[Step], gpu: list[GpuStep], now_ns: int
    ) -> None:
        assert self._endpoint is not None
        peer.sequence += 1
        batch = Batch(
            sequence=peer.sequence,
            sent_ns=now_ns,
            steps=steps,
            open=self._timeline.open(),
            loaders=peer.loaders_to_tell(self._timeline.loaders.all()),
            lost_marks=self._timeline.lost_marks,
            rss_bytes=self._rss_bytes,
            mark_cost_ns=self._mark_cost_ns,
            marks=self._marks,
            fault=self._fuse.fault,
            gpu_steps=gpu,
            gpu_memory=self._gpu_memory,
            gpu_clocks=self._gpu_clocks,
            settings=peer.settings_to_tell(self._glance.reading),
            file_bytes=self._file_bytes,
            refused=self._refused,
        )
        self._endpoint.send(identity, encode_batch(batch))

    def _hold(self, endpoint: Endpoint) -> None:
        """See to it that there is a socket. Where that fails the page says why, until it works."""
        told: tuple[str | None, str | None] = f"ipc://{endpoint.path}", None
        try:
            endpoint.hold()
        except OSError as error:
            told = None, f"no socket: {error}"
        if told != (self._identity.endpoint, self._identity.fault):
            self._say(*told)

    def _say(self, endpoint: str | None, fault: str | None) -> None:
        self._identity = self._identity.but(endpoint=endpoint, fault=self._fuse.fault or fault)
        self._page.say(self._identity.as_json(page.HELLO_BYTES))


def serve(server: Server, stop: Event, reason: Callable[[], str]) -> None:
    """Take turns until `stop` is set."""
    server.open()
    while not stop.is_set():
        server.wait(stop, TURN_S)
        if not stop.is_set():
            server.turn()
    server.turn(last=True)
    server.close(reason())
