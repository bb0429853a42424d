"""The socket: one ROUTER on a unix socket that only its owner (and root) can reach."""

import os

import zmq

SEND_QUEUE: int = 256
"""Messages a monitor may be behind; what comes after is dropped for it, and it can count them."""
LONGEST_REQUEST_BYTES: int = 4096


class Endpoint:
    """A bound ROUTER. Owned by one thread.

    Raises OSError (`zmq.ZMQError` is one) from `open` when the socket cannot be bound.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._context = zmq.Context(io_threads=1)
        self._socket: zmq.Socket[bytes] | None = None
        self._inode = 0

    def open(self) -> None:
        """Bind; with the kernel's check of the peer's user where this libzmq has it."""
        self._socket = self._bind(filtered=True)
        if not _answers(self._context, self._socket, self.path):
            # ZMQ_IPC_FILTER_UID is deprecated upstream and may one day let nobody in; the 0700
            # directory is the main guard.
            self._socket.close(linger=0)
            self._socket = self._bind(filtered=False)

    def _bind(self, filtered: bool) -> "zmq.Socket[bytes]":
        socket = self._context.socket(zmq.ROUTER)
        socket.linger = 0
        socket.sndhwm = SEND_QUEUE
        socket.rcvhwm = SEND_QUEUE
        socket.setsockopt(zmq.MAXMSGSIZE, LONGEST_REQUEST_BYTES)
        if filtered:
            for uid in {os.getuid(), 0}:
                socket.setsockopt(zmq.IPC_FILTER_UID, uid)
        socket.bind(f"ipc://{self.path}")
        self._inode = os.stat(self.path).st_ino
        return socket

    def receive(self, most: int) -> list[tuple[bytes, bytes]]:
        """What has arrived, as (peer, frame), at most `most`; never waits."""
        assert self._socket is not None
        arrived = []
        for _ in range(most):
            try:
                parts = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            if len(parts) == 2:
                arrived.append((parts[0], parts[1]))
        return arrived

    def send(self, peer: bytes, frame: bytes) -> None:
        """Send, or drop it: a monitor that does not read never holds anything up."""
        assert self._socket is not None
        try:
            self._socket.send_multipart([peer, frame], zmq.NOBLOCK, copy=True)
        except zmq.Again:
            return

    def mend(self) -> None:
        """Bind again when somebody has removed our socket file."""
        try:
            if os.stat(self.path).st_ino == self._inode:
                return
        except FileNotFoundError:
            pass
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self._socket = self._bind(filtered=True)

    def close(self) -> None:
        """Unbind, which removes the file; waits for nobody."""
        self._context.destroy(linger=0)
        if os.path.exists(self.path):
            os.unlink(self.path)


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
