"""One connection to an agent: the command that carries it, frames in, requests out."""

import os
import select
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread
from typing import IO, Final

from .. import clock
from ..errors import GpuwatchError
from . import frames
from .frames import Frame, FrameReader, Kind, LinkError, LinkHello, decoded, frame
from .places import NONE, Place

MOST_NOISE: Final = 65_536
"""Bytes that a login shell may print before the agent speaks."""
READ_BYTES: Final = 65_536
KEPT_LINES: Final = 8
"""Of what ssh or the agent print on stderr: the last say why it ended."""
MOST_SHOWN: Final = 50
"""Lines of it that are handed on: a banner, a warning about a host's key."""
LEAVE_S: Final = 1.0
"""Longest that the command is waited for after it was asked to leave; then it is killed. The agent
has been asked too, and ends also where nothing more comes."""


class LinkLostError(Exception):
    """The command has ended, or is silent; what it wrote last is the message."""


class NoGpuwatchError(GpuwatchError):
    """Nothing there has gpuwatch."""


class RefusedError(GpuwatchError):
    """The two sides cannot speak, or the agent cannot do what it was asked."""


class Line:
    """Made by `begin`; read on one thread, written on any."""

    def __init__(self, place: Place, process: "subprocess.Popen[bytes]", quiet: bool) -> None:
        self.place = place
        self.bytes_in = 0
        """Received so far, with what came before the agent spoke."""
        self.hello: LinkHello
        self._process = process
        self._reader = FrameReader()
        self._waiting: deque[Frame] = deque()
        self._lock = Lock()
        self._words: deque[str] = deque(maxlen=KEPT_LINES)
        self._quiet = quiet
        self._is_silent = False
        self._listener = Thread(target=self._listen, name="link stderr", daemon=True)
        self._listener.start()

    def read(self, wait_s: float) -> Frame | None:
        """The next frame; None where none comes in time. Raises LinkLostError or LinkError."""
        if not self._waiting:
            data = self._bytes(wait_s)
            if data:
                self._waiting += self._reader.feed(data)
        return self._waiting.popleft() if self._waiting else None

    def wait_for(self, kinds: tuple[Kind, ...], limit_s: float) -> Frame:
        """The next frame of one of these kinds; others are left out. Raises as `read` does."""
        end = _now_s() + limit_s
        while (left_s := end - _now_s()) > 0:
            found = self.read(left_s)
            if found is not None and found.kind in kinds:
                return found
        raise self.give_up(f"no answer within {limit_s:.0f} s")

    def send(self, data: bytes) -> None:
        """Send a frame. Raises LinkLostError."""
        out = self._process.stdin
        assert out is not None
        try:
            with self._lock:
                out.write(data)
                out.flush()
        except (OSError, ValueError):
            raise LinkLostError(self.last_words()) from None

    def close(self) -> None:
        """Leave for good: the agent keeps nothing for us."""
        try:
            self.send(frame(Kind.BYE))
        except LinkLostError:
            pass
        self._shut()
        try:
            self._process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._let_go()

    def abandon(self) -> None:
        """The link is lost. The command may be the agent itself, which collects on for us: only one
        that says nothing any more is killed."""
        self._shut()
        if self._is_silent:
            self._process.kill()
        Thread(target=self._reap, name="link end", daemon=True).start()

    def _shut(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass  # what it had not taken is lost

    def _reap(self) -> None:
        self._process.wait()
        self._let_go()

    def _let_go(self) -> None:
        self._listener.join(0.2)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def be_quiet(self) -> None:
        """From now on what the command prints on stderr is kept and not shown: a screen is up."""
        self._quiet = True

    def give_up(self, why: str) -> LinkLostError:
        """It says nothing any more: the error to raise."""
        self._is_silent = True
        return LinkLostError(why)

    def last_words(self) -> str:
        """The last line that it wrote, for a person."""
        self._listener.join(0.1)
        return frames.clean(self._words[-1]) if self._words else "the connection was closed"

    @property
    def words(self) -> tuple[str, ...]:
        """The last lines that it printed."""
        return tuple(self._words)

    def begin_link(self, limit_s: float) -> None:
        """Wait for the agent's first word, past what a login shell prints. Raises LinkLostError,
        NoGpuwatchError or RefusedError."""
        noise = bytearray()
        end = _now_s() + limit_s
        while (at := noise.find(frames.GREETING)) < 0:
            if (left_s := end - _now_s()) <= 0:
                raise self.give_up("no agent has begun to speak")
            try:
                noise += self._bytes(left_s)
            except LinkLostError:
                self._check_found(bytes(noise))
                raise
            if len(noise) > MOST_NOISE:
                raise LinkError("it prints other things than an agent does")
        self._waiting += self._reader.feed(bytes(noise[at + len(frames.GREETING) :]))
        found = self.wait_for((Kind.HELLO,), 10.0)
        self.hello = decoded(found.body, LinkHello)
        frames.check_versions(self.hello)

    def _check_found(self, noise: bytes) -> None:
        for line in noise.splitlines():
            if line.startswith(NONE):
                python = frames.clean(line[len(NONE) :].decode(errors="replace").strip())
                raise NoGpuwatchError(
                    f"no Python on {self.place.name} has gpuwatch",
                    "Looked in the process's own, on PATH and in the login shell's.",
                    f"Install it there: {self.place.install(python)}",
                )

    def _bytes(self, wait_s: float) -> bytes:
        out = self._process.stdout
        assert out is not None
        try:
            if not select.select([out], [], [], max(0.0, wait_s))[0]:
                return b""
            data = os.read(out.fileno(), READ_BYTES)
        except (OSError, ValueError):  # closed meanwhile: somebody leaves
            data = b""
        if not data:
            raise LinkLostError(self.last_words())
        self.bytes_in += len(data)
        return data

    def _listen(self) -> None:
        stream: IO[bytes] | None = self._process.stderr
        assert stream is not None
        shown = 0
        with stream:
            while raw := stream.readline(frames.MOST_TEXT * 4):
                line = frames.clean(raw.decode(errors="replace").rstrip())
                if not line:
                    continue
                self._words.append(line)
                if not self._quiet and shown < MOST_SHOWN:
                    shown += 1
                    os.write(2, f"{line}\n".encode())


def begin(
    place: Place,
    pid: int | None,
    *,
    asks: bool,
    limit_s: float,
    meanwhile: Callable[[], object] = lambda: None,
) -> Line:
    """Start the command, do something `meanwhile`, and wait for its agent. Where a person can be
    asked, ssh has the terminal.

    Raises LinkLostError, LinkError, NoGpuwatchError or RefusedError.
    """
    command = place.command(pid, asks)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for us: we tell the agent to leave. In a session of its own ssh could ask
            # for no password.
            start_new_session=not asks,
            preexec_fn=_ignore_interrupts if asks else None,
        )
    except OSError as error:
        raise RefusedError(
            f"{command[0]} cannot be started", os.strerror(error.errno or 0)
        ) from None
    line = Line(place, process, quiet=not asks)
    try:
        meanwhile()
        line.begin_link(limit_s)
    except BaseException as error:
        line.give_up(str(error))
        line.abandon()
        raise
    return line


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _now_s() -> float:
    return clock.now_ns() / 1e9
