"""The socket: one ROUTER on a unix socket that only its owner (and root) can reach."""

import os
from typing import Final, cast

import zmq

from .socket_directory import make_safe

SEND_QUEUE: int = 256
"""Messages a monitor may be behind; what comes after is dropped for it, and it can count them."""
LONGEST_REQUEST_BYTES: int = 4096
_EVENTS: Final = int(zmq.EVENTS)
_ARRIVED: Final = int(zmq.POLLIN)
_AT_ONCE: Final = int(zmq.NOBLOCK)
_AND_MORE: Final = int(zmq.NOBLOCK | zmq.SNDMORE)


class Endpoint:
    """A ROUTER that is bound, or will be once it can be. Owned by one thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._context = zmq.Context(io_threads=1)
        self._socket: zmq.Socket[bytes] | None = None
        self._inode = 0
        self._filtered: bool | None = None
        """The kernel checks the peer's user; None before the first bind."""

    def hold(self) -> None:
        """Bind, if we are not bound or somebody has removed our socket file.

        Raises OSError where that cannot be done now. Whoever is connected stays so then.
        """
        if self._is_there():
            return
        make_safe(os.path.dirname(self.path))
        if self._socket is not None:
            self._socket.close(linger=0)  # it would take the new file with it, were it closed later
            self._socket = None
        if self._filtered is None:
            self._socket = self._bind(filtered=True)
            # ZMQ_IPC_FILTER_UID is deprecated upstream and may one day let nobody in; the 0700
            # directory is the main guard.
            self._filtered = _answers(self._context, self._socket, self.path)
            if self._filtered:
                return
            self._socket.close(linger=0)
            self._socket = None
        self._socket = self._bind(self._filtered)

    def _is_there(self) -> bool:
        try:
            return self._socket is not None and os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def _bind(self, filtered: bool) -> "zmq.Socket[bytes]":
        socket = self._context.socket(zmq.ROUTER)
        socket.linger = 0
        socket.sndhwm = SEND_QUEUE
        socket.rcvhwm = SEND_QUEUE
        socket.setsockopt(zmq.MAXMSGSIZE, LONGEST_REQUEST_BYTES)
        if filtered:
            for uid in {os.getuid(), 0}:
                socket.setsockopt(zmq.IPC_FILTER_UID, uid)
        try:
            socket.bind(f"ipc://{self.path}")
            self._inode = os.stat(self.path).st_ino
        except (zmq.ZMQError, OSError) as error:
            socket.close(linger=0)
            raise OSError(error.errno, os.strerror(error.errno or 0), self.path) from None
        return socket

    def receive(self, most: int) -> list[tuple[bytes, bytes]]:
        """What has arrived, as (peer, frame), at most `most`; never waits."""
        arrived: list[tuple[bytes, bytes]] = []
        if self._socket is None:
            return arrived
        for _ in range(most):
            if not cast(int, self._socket.get(_EVENTS)) & _ARRIVED:
                break  # an error that says so costs ten times as much
            parts = self._socket.recv_multipart(zmq.NOBLOCK)
            if len(parts) == 2:
                arrived.append((parts[0], parts[1]))
        return arrived

    def send(self, peer: bytes, frame: bytes) -> None:
        """Send, or drop it: a monitor that does not read never holds anything up."""
        try:
            if self._socket is not None:
                self._socket.send(peer, _AND_MORE)
                self._socket.send(frame, _AT_ONCE)
        except zmq.Again:
            return

    def close(self) -> None:
        """Unbind, which removes the file; waits for nobody."""
        is_there = self._is_there()
        self._context.destroy(linger=0)
        try:
            if is_there:
                os.unlink(self.path)
        except OSError:
            pass  # libzmq has removed it, or nobody may


def _answers(
    context: "zmq.Context[zmq.Socket[bytes]]", router: "zmq.Socket[bytes]", path: str
) -> bool:
    """Whether a peer of our own user gets through to `router`."""
    with context.socket(zmq.DEALER) as knock:
        knock.linger = 0
        knock.connect(f"ipc://{path}")
        knock.send(b"")
        if not router.poll(500):
            return False
        router.recv_multipart()
        return True
