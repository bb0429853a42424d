"""Asks a probe for a window of its profiler or its memory, and reads the files that come of it.

Each question waits for its answer, so it is asked on a thread of its own or by a command.
"""

import os
from contextlib import suppress
from threading import Event
from typing import Any, Final, TypeVar

import msgspec
import psutil

from .. import clock
from ..discovery.sockets import HeldSocket, open_socket, take_beside
from ..errors import GpuwatchError, NothingToMeasureError
from ..messages import Hello, MemorySeen, Profiled, decode_reply, encode_message
from ..requests import AskMemory, AskProfile
from ..trace.events import MOST_BYTES
from ..trace.leaks import MemoryWindow
from ..trace.profile import Recorded, Window
from .source_text.files import ShortPaths

POLL_MS: Final = 100
PATIENCE_S: Final = 75.0
"""Beyond what is asked for: a probe begins at a step's end or refuses after a minute."""


class _Recording(msgspec.Struct):
    file: str
    bytes: int
    ends_ns: list[int]
    marks: list[tuple[int, int]]
    anchor: tuple[int, int]
    pause_ns: int
    issued: list[dict[str, int]] = []


class ProfileAnswer(msgspec.Struct):
    """What the probe says of its window."""

    why_not: str = ""
    times: _Recording | None = None
    operators: _Recording | None = None
    looks: list[tuple[int, int]] = []
    places: list[list[tuple[str, str, int]]] = []
    no_operators: str = ""
    torn_down: bool = False
    on_device: bool = False
    issued: dict[str, int] | None = None
    """By process group, where no step was asked for."""

    @property
    def pause_ns(self) -> int:
        """What beginning and ending its recordings took the training thread."""
        return sum(one.pause_ns for one in (self.times, self.operators) if one is not None)


Answer = TypeVar("Answer", ProfileAnswer, MemoryWindow)


class DeepLookLink:
    """A connection of its own to the probe, for one question at a time. A context manager."""

    def __init__(self, hello: Hello, pid: int) -> None:
        """`pid` as it is here. Raises a GpuwatchError where there is no socket that can be
        trusted."""
        import zmq

        self._pid = pid
        if hello.endpoint is None:
            raise NothingToMeasureError(
                f"process {pid} has no socket", hello.fault or "", "See: gpuwatch doctor"
            )
        self._endpoint = hello.endpoint
        self._uid = psutil.Process(pid).uids().real
        held = open_socket(self._endpoint, pid, self._uid)
        if held is None:
            raise NothingToMeasureError(f"the socket of process {pid} is not there")
        self._held: HeldSocket = held
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
        self._socket.linger = 200
        self._socket.connect(held.address)

    def __enter__(self) -> "DeepLookLink":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._context.term()
        self._held.close()

    def issued(self) -> dict[str, int]:
        """How many collectives each process group has issued, by its name. Raises as `profile`
        does."""
        request = AskProfile(0, 0, False, self._held.key)
        answer = _decoded(
            self._ask(encode_message(request), Profiled, PATIENCE_S, None), ProfileAnswer
        )
        if answer.issued is None:
            raise NothingToMeasureError(
                f"process {self._pid} does not number its collectives",
                answer.why_not or "Its gpuwatch-torch is older than this one.",
            )
        return answer.issued

    def profile(
        self,
        steps: int,
        most_s: float,
        operators: bool,
        stop: Event | None = None,
        behind: tuple[str, int] = ("", 0),
    ) -> tuple[ProfileAnswer, Window]:
        """A profiler's window; `behind` so many collectives of a process group, where one is named.
        Raises a GpuwatchError where the probe refuses or does not answer, or `stop` is set."""
        request = AskProfile(steps, round(most_s * 1e9), operators, self._held.key, *behind)
        body = self._ask(encode_message(request), Profiled, 2 * most_s + PATIENCE_S, stop)
        answer = _decoded(body, ProfileAnswer)
        if answer.why_not or answer.times is None:
            raise NothingToMeasureError(
                "the process cannot be profiled now", answer.why_not or "it recorded nothing"
            )
        times = self._recorded(answer.times)
        named = None if answer.operators is None else self._recorded(answer.operators)
        short = ShortPaths(self._pid)
        places = tuple(
            tuple((name, short.of(file), line) for name, file, line in place)
            for place in answer.places
        )
        return answer, Window(times, named, tuple(answer.looks), places)

    def memory(
        self, for_s: float, host: bool, stop: Event | None = None
    ) -> tuple[MemoryWindow, bytes | None]:
        """The memory's window, and the snapshot's file. Raises as `profile` does."""
        request = AskMemory(round(for_s * 1e9), host, self._held.key)
        before = own_memory_below(self._pid)
        body = self._ask(encode_message(request), MemorySeen, for_s + PATIENCE_S, stop)
        answer = _decoded(body, MemoryWindow)
        if answer.why_not:
            raise NothingToMeasureError("memory cannot be recorded now", answer.why_not)
        after = own_memory_below(self._pid)
        answer.workers = [(pid, after[pid] - size) for pid, size in before.items() if pid in after]
        snapshot = None
        if answer.file:
            snapshot = self._read(answer.file)
        return answer, snapshot

    def _ask(
        self, frame: bytes, wanted: "type[Profiled | MemorySeen]", limit_s: float,
        stop: Event | None,
    ) -> bytes:  # fmt: skip
        self._socket.send(frame)
        until_s = clock.now_ns() / 1e9 + limit_s
        while clock.now_ns() / 1e9 < until_s:
            if stop is not None and stop.is_set():
                raise GpuwatchError("given up")
            if not psutil.pid_exists(self._pid):
                raise NothingToMeasureError(f"process {self._pid} has ended")
            if not self._socket.poll(POLL_MS):
                continue
            try:
                reply = decode_reply(self._socket.recv())
            except ValueError:
                continue
            if isinstance(reply, wanted):
                return reply.body
        raise NothingToMeasureError(
            f"the probe of process {self._pid} did not answer within {limit_s:.0f} s",
            "Its gpuwatch-torch may be older than this one, or no step ends.",
        )

    def _recorded(self, one: _Recording) -> Recorded:
        data = self._read(one.file)
        return Recorded(data, tuple(one.ends_ns), tuple(one.marks), one.anchor)

    def _read(self, name: str) -> bytes:
        """Raises GpuwatchError where it cannot be read, or is too large."""
        try:
            with os.fdopen(take_beside(self._endpoint, name, self._pid, self._uid), "rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise GpuwatchError(f"{name} of process {self._pid}: {error.strerror}") from None
        if len(data) > MOST_BYTES:
            raise GpuwatchError(f"{name} of process {self._pid} has more than 200 MB")
        return data


def _decoded(body: bytes, wanted: type[Answer]) -> Answer:
    """Raises GpuwatchError where it is malformed."""
    try:
        return msgspec.json.decode(body, type=wanted)
    except ValueError as error:
        raise GpuwatchError("the probe's answer is malformed", str(error)) from None


def own_memory_below(pid: int) -> dict[int, int]:
    """Bytes that the processes below it share with nobody's file, by pid: a worker's data."""
    found: dict[int, int] = {}
    try:
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                memory = child.memory_info()
                found[child.pid] = memory.rss - memory.shared
    except psutil.Error:
        pass  # it has ended
    return found
