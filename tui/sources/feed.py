"""The monitor's end of the socket: subscribes, decodes, counts what is missing."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import psutil

from ..discovery.sockets import HeldSocket, open_socket
from ..errors import NotPermittedError
from ..messages import SCHEMA, Bye, Dump, Greeting, Hello, ThreadStack, encode_message
from ..model.observations import (
    AnyObservation,
    Delivered,
    DumpSeen,
    Greeted,
    Link,
    Missing,
    StackCount,
)
from ..model.plausible import is_plausible
from ..requests import AskStacks, Leave, Subscribe
from ..steps import Batch
from .marks.reader import Decoded, ReplyReader
from .source_text.files import ShortPaths, lines_of
from .stack_samples import PIN_LOOP, frame_text

if TYPE_CHECKING:
    import zmq

# What the probe itself saw of its process's threads, in the words of the other stacks.

CUT: Final = "… more frames"
"""In place of the outermost ones, where there were too many to send."""


class DumpReader:
    """Looks at the files of one process."""

    def __init__(self, pid: int) -> None:
        """`pid` as it is here."""
        self._pid = pid
        self._paths = ShortPaths(pid)
        self._lines = lines_of(pid)

    def read(self, dump: Dump, now_ns: int) -> DumpSeen:
        """One dump."""
        stacks = tuple(self._stack(thread) for thread in dump.threads)
        return DumpSeen(t_ns=now_ns, taken_ns=dump.taken_ns, stacks=stacks, left_out=dump.left_out)

    def _stack(self, thread: ThreadStack) -> StackCount:
        frames = tuple(frame_text(frame, self._paths.of) for frame in thread.frames)
        pins = any(frame.startswith(PIN_LOOP) for frame in frames)
        return StackCount(
            role="main" if thread.training else "pin" if pins else "other",
            pid=self._pid,
            thread=thread.name,
            frames=(CUT, *frames) if thread.cut else frames,
            count=1,
            line=self._lines.of(frames),
        )


POLL_NS: Final = 100_000_000
"""Twice as often as batches come; the screen draws four times a second."""
WATCHING_NS: Final = 1_000_000_000
"""How often the probe is sent that somebody watches."""
FORGOTTEN_NS: Final = 5_000_000_000
"""A probe forgets who was silent for so long: a monitor that was stopped asks for all anew."""
GREETING_NS: Final = 1_000_000_000
"""No greeting within this is a dead end: a forked worker may hold the socket."""
SILENT_NS: Final = 3_000_000_000
"""Batches come four times a second; this long without one, the link is called silent."""
CHECK_NS: Final = 1_000_000_000
"""How often a directory that is not there, or cannot be trusted, is checked again."""
FIRST_PPM: Final = 3_000
LASTING_PPM: Final = 1_000
ENOUGH_STEPS: Final = 300
"""Of the training thread's time device marks may take 0.3 % until so many steps are measured: a
verdict needs twenty. From then on 0.1 % is some 14 steps a second."""
FRAMES_A_POLL: Final = 1_000
ASK_NS: Final = 10_000_000_000
"""How often stacks that are lacking are asked for, until they are there."""


class FeedSource:
    """A DEALER to the probe's ROUTER. Opened, polled and closed on one thread."""

    name: Final = "feed"
    interval_ns = POLL_NS

    def __init__(
        self,
        hello: Hello,
        pid: int | None = None,
        lacks_stacks: Callable[[], bool] = lambda: False,
        count_flops: bool = False,
    ) -> None:
        """`pid` as it is here: in a container the process itself knows another. `lacks_stacks`:
        whether only the probe can report where a run that does not move is. `count_flops`: ask
        for the FLOPs of one step."""
        self._count_flops = count_flops
        self._lacks_stacks = lacks_stacks
        self._hello = hello
        self._pid = hello.pid if pid is None else pid
        self._context: zmq.Context[Any] | None = None
        self._socket: zmq.Socket[bytes] | None = None
        self._held: HeldSocket | None = None
        self._refused: NotPermittedError | None = None
        """Why its socket cannot be trusted."""
        self._checked_ns = 0
        self._sequence = 0
        self._greeted = False
        self._opened_ns: int | None = None
        self._polled_ns = 0
        self._received_ns = 0
        self._reported_ns: int | None = None
        self._silent = False
        self._left = False
        self._malformed = 0
        self._asked_ns: int | None = None
        self._dumps = DumpReader(self._pid)
        self._replies = ReplyReader()

    def open(self) -> None:
        """Connect, if the socket is there and can be trusted; nothing is waited for."""
        if self._hello.endpoint is None:
            return
        self._held = self._trusted(self._hello.endpoint)
        if self._held is None:
            return
        import zmq

        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.rcvhwm = 10_000
        self._socket.connect(self._held.address)

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """Everything that has arrived."""
        if self._opened_ns is None:
            self._opened_ns = self._received_ns = self._polled_ns = self._checked_ns = now_ns
            if self._hello.endpoint is None:
                reason = self._hello.fault or "the probe has no socket"
                return [Missing(t_ns=now_ns, source=self.name, reason=reason)]
            if self._refused is not None:
                return [self._refusal(now_ns, self._refused)]
        if self._hello.endpoint is None:
            return []
        is_over = self._silent or self._left
        if is_over and self._held is not None and self._held.is_removed:
            self._disconnect(linger_ms=0)  # a program may install the probe once more
        if self._socket is None:
            return self._check_again(now_ns)
        if now_ns - self._polled_ns > 2 * WATCHING_NS:
            self._received_ns = now_ns  # while this process was stopped it received nothing
        self._polled_ns = now_ns
        seen: list[AnyObservation] = []
        self._send_watching(now_ns)
        self._ask_for_stacks(now_ns)
        for frame in self._arrived():
            try:
                reply = self._replies.read(frame)
                if isinstance(reply, Batch) and not is_plausible(reply):
                    raise ValueError("times that there are not")
            except ValueError as error:
                self._malformed += 1
                if self._malformed == 1:
                    seen.append(Link(t_ns=now_ns, state="malformed", detail=str(error)))
                continue
            seen += self._take(reply, now_ns)
        seen += self._judge_silence(now_ns)
        return seen

    def close(self) -> None:
        """Say good-bye and disconnect."""
        if self._socket is not None:
            self._send(encode_message(Leave(os.getpid())))
        self._disconnect(linger_ms=100)

    # ------------------------------------------------------------------------------------------

    def _disconnect(self, linger_ms: int) -> None:
        if self._socket is not None and self._context is not None:
            self._socket.close(linger=linger_ms)
            self._context.term()
        self._socket = self._reported_ns = None
        if self._held is not None:
            self._held.close()
            self._held = None

    def _trusted(self, endpoint: str) -> HeldSocket | None:
        """The socket itself, held: what is not there another user could make meanwhile."""
        try:
            return open_socket(endpoint, self._pid, psutil.Process(self._pid).uids().real)
        except psutil.NoSuchProcess:
            return None  # others report its end
        except NotPermittedError as error:
            self._refused = error
            return None

    def _check_again(self, now_ns: int) -> list[AnyObservation]:
        """Until there is a connection."""
        if now_ns - self._checked_ns < CHECK_NS:
            return []
        self._checked_ns = now_ns
        known = self._refused is not None
        self.open()
        if self._socket is not None:
            self._received_ns = now_ns
            return []
        if self._refused is not None:
            return [] if known else [self._refusal(now_ns, self._refused)]
        return self._judge_silence(now_ns)

    def _refusal(self, now_ns: int, error: NotPermittedError) -> Missing:
        self._silent = True  # a greeting takes it back
        fix = f"{error.why} {error.fix}".strip()
        return Missing(t_ns=now_ns, source=self.name, reason=error.what, fix=fix)

    def _send_watching(self, now_ns: int) -> None:
        assert self._held is not None
        silent_ns = None if self._reported_ns is None else now_ns - self._reported_ns
        if silent_ns is None or silent_ns >= WATCHING_NS:
            unknown = silent_ns is None or silent_ns > FORGOTTEN_NS
            self._reported_ns = now_ns
            reader = self._replies.marks
            ppm = FIRST_PPM if reader.measured < ENOUGH_STEPS else LASTING_PPM
            asked = Subscribe(
                SCHEMA,
                os.getpid(),
                unknown,
                reader.behind_ns,
                ppm,
                self._held.key,
                self._count_flops,
            )
            self._send(encode_message(asked))

    def _ask_for_stacks(self, now_ns: int) -> None:
        if not self._lacks_stacks():
            self._asked_ns = None
        elif self._asked_ns is None or now_ns - self._asked_ns >= ASK_NS:
            self._asked_ns = now_ns
            self._send(encode_message(AskStacks()))

    def _send(self, frame: bytes) -> None:
        import zmq

        assert self._socket is not None
        try:
            self._socket.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            return  # nobody at the other end yet; the silence will be reported

    def _arrived(self) -> list[bytes]:
        import zmq

        assert self._socket is not None
        frames = []
        for _ in range(FRAMES_A_POLL):
            try:
                frames.append(self._socket.recv(zmq.NOBLOCK))
            except zmq.Again:
                break
        return frames

    def _take(self, reply: Decoded, now_ns: int) -> list[AnyObservation]:
        self._received_ns = now_ns
        seen: list[AnyObservation] = []
        if self._silent:
            self._silent = False
            seen.append(Missing(t_ns=now_ns, source=self.name, reason=""))
        if isinstance(reply, Greeting):
            self._sequence = 0
            self._greeted, self._left = True, False
            seen.append(Greeted(t_ns=now_ns, hello=reply.hello))
            seen.append(Link(t_ns=now_ns, state="connected"))
            if reply.hello.schema > SCHEMA:
                reason = f"the probe has version {reply.hello.schema}, this gpuwatch {SCHEMA}"
                fix = "install the same gpuwatch-torch here as in the training environment"
                seen.append(Missing(t_ns=now_ns, source=self.name, reason=reason, fix=fix))
        elif isinstance(reply, Batch):
            lost = max(0, reply.sequence - self._sequence - 1)
            self._sequence = reply.sequence
            seen.append(Delivered(t_ns=now_ns, batch=reply, lost=lost))
        elif isinstance(reply, Dump):
            seen.append(
                Missing(t_ns=now_ns, source="dump", reason=reply.why_not)
                if reply.why_not
                else self._dumps.read(reply, now_ns)
            )
        elif isinstance(reply, Bye):
            self._left = True
            seen.append(Link(t_ns=now_ns, state="left", detail=reply.reason))
        return seen

    def _judge_silence(self, now_ns: int) -> list[AnyObservation]:
        limit_ns = SILENT_NS if self._greeted else GREETING_NS
        if self._silent or self._left or now_ns - self._received_ns < limit_ns:
            return []
        self._silent = True
        if self._greeted:
            reason = f"no message for {limit_ns / 1e9:.0f} s: the process is held up in one call"
        elif self._socket is None:
            reason = "the probe's socket is not there"
        else:
            reason = "the probe's socket does not answer"
        return [
            Link(t_ns=now_ns, state="silent", detail=reason),
            Missing(t_ns=now_ns, source=self.name, reason=reason),
        ]
