"""A way through the network that is slow, lossy, or cut: a TCP proxy in the test's own process.

Where the kernel has netem that does it better; many containers' kernels do not. A lost packet shows
to TCP as a pause: everything behind it waits for its retransmission.
"""

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

SEGMENT_BYTES: Final = 1_400
RETRANSMISSION_S: Final = 0.2
"""Least timeout of Linux; on a longer path its round trip on top."""


@dataclass
class Path:
    """Both ways are alike."""

    to: tuple[str, int]
    delay_s: float = 0.0
    bits_s: float = 1e9
    loss: float = 0.0
    port: int = 0
    """Where it listens."""
    carried_bytes: int = 0
    cut: threading.Event = field(default_factory=threading.Event)
    """While it is set nothing comes through, and nobody is notified."""
    _closed: threading.Event = field(default_factory=threading.Event)

    def serve(self, listener: socket.socket) -> None:
        """Take connections until the end."""
        while not self._closed.is_set():
            try:
                near, _ = listener.accept()
            except OSError:
                return
            if self.cut.is_set():
                threading.Thread(target=self._hold, args=(near,), daemon=True).start()
                continue
            far = socket.create_connection(self.to)
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _hold(self, near: socket.socket) -> None:
        """A connection that gets no answer."""
        self._closed.wait(120)
        near.close()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        """Read, and send each segment when it would arrive."""
        rng, queue = random.Random(1), _Queue(other, self.cut, self._closed)
        free_s = time.monotonic()
        try:
            while data := one.recv(SEGMENT_BYTES):
                self.carried_bytes += len(data)
                free_s = max(free_s, time.monotonic()) + 8 * (len(data) + 40) / self.bits_s
                if rng.random() < self.loss:
                    free_s += RETRANSMISSION_S + 2 * self.delay_s
                queue.put(free_s + self.delay_s, data)
        except OSError:
            pass  # the other side has ended without a word
        queue.put(free_s + self.delay_s, b"")

    def close(self) -> None:
        """Let nothing through any more."""
        self._closed.set()


class _Queue:
    """Segments in flight to one socket."""

    def __init__(self, to: socket.socket, cut: threading.Event, closed: threading.Event) -> None:
        self._to = to
        self._cut = cut
        self._closed = closed
        self._segments: list[tuple[float, bytes]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, due_s: float, data: bytes) -> None:
        """b"" is the end."""
        with self._changed:
            self._segments.append((due_s, data))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._segments:
                    self._changed.wait()
                due_s, data = self._segments.pop(0)
            while (left_s := due_s - time.monotonic()) > 0:
                time.sleep(left_s)
            while self._cut.is_set() and not self._closed.is_set():
                self._closed.wait(0.05)
            try:
                if not data:
                    self._to.shutdown(socket.SHUT_WR)
                    return
                self._to.sendall(data)
            except OSError:
                return


@contextmanager
def path(
    to: tuple[str, int], *, delay_s: float = 0.0, bits_s: float = 1e9, loss: float = 0.0
) -> Iterator[Path]:
    """A way to an address, which listens on a port of its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        found = Path(to, delay_s, bits_s, loss, port=listener.getsockname()[1])
        threading.Thread(target=found.serve, args=(listener,), daemon=True).start()
        try:
            yield found
        finally:
            found.close()
