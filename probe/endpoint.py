"""The socket: the ROUTER side of ZeroMQ's protocol on a unix socket that only its owner and root
reach.

One thread owns it. Nothing waits for a peer: what a monitor does not read waits here up to a bound,
beyond that it loses messages (they are numbered, so it can count them), and one that reads nothing
for a while is dropped.
"""

import errno
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Final

from . import clock
from .socket_place import LONGEST_PATH, key_path, make_key, make_safe, remove_key, write_key
from .state_page import check_spare, identity_of, is_spare
from .zmtp import Connection, ProtocolError, frame_header

MOST_CONNECTIONS: Final = 16
BACKLOG: Final = 64
MOST_WAITING_BYTES: Final = 2_000_000
"""What may wait for a peer; one message may always, however long (4 MB)."""
HANDSHAKE_NS: Final = 2_000_000_000
STALLED_NS: Final = 30_000_000_000
"""A peer that has read nothing for so long while something waited for it is dropped."""
IDLE_NS: Final = 5_000_000_000
"""A peer that was silent for so long gives its place up when another comes."""
MOST_REQUESTS: Final = 64
"""Of one peer that wait to be taken; until then no more is read from it."""
READ_BYTES: Final = 8_192
_PEER: Final = struct.Struct("3i")
"""pid, uid, gid by the kernel."""


class _Peer:
    """One connection: its socket, its protocol and what waits for it."""

    __slots__ = (
        "file",
        "known",
        "pid",
        "protocol",
        "received_ns",
        "sent_ns",
        "socket",
        "waiting",
        "waiting_bytes",
    )  # fmt: skip

    def __init__(self, connected: socket.socket, pid: int, now_ns: int) -> None:
        self.socket = connected
        self.pid = pid
        """As the kernel knows it, 0 where it does not: no peer is asked for its own."""
        self.file = identity_of(connected.fileno())
        self.protocol = Connection()
        self.known = False
        """A message of it was taken."""
        self.waiting: deque[memoryview] = deque()
        self.waiting_bytes = 0
        self.received_ns = self.sent_ns = now_ns

    def is_ours(self) -> bool:
        """Nobody has closed the descriptor under us."""
        return self.file is not None and identity_of(self.socket.fileno()) == self.file

    def queue(self, data: bytes) -> None:
        if not self.waiting:
            self.sent_ns = clock.now_ns()
        self.waiting.append(memoryview(data))
        self.waiting_bytes += len(data)

    def flush(self) -> None:
        """Send what the kernel takes now. Raises OSError where the peer is not there any more."""
        for data in self.protocol.out:
            if self.waiting_bytes <= MOST_WAITING_BYTES:
                self.queue(data)
        self.protocol.out.clear()
        while self.waiting:
            try:
                sent = self.socket.send(self.waiting[0])
            except BlockingIOError:
                return
            self.sent_ns = clock.now_ns()
            self.waiting_bytes -= sent
            if sent == len(self.waiting[0]):
                self.waiting.popleft()
            else:
                self.waiting[0] = self.waiting[0][sent:]


class Endpoint:
    """A ROUTER that is bound, or will be once it can be. Owned by one thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.key = make_key()
        """What a request has to bear."""
        self._listener: socket.socket | None = None
        self._file: tuple[int, int] | None = None
        """What the listener's descriptor is."""
        self._inode = 0
        """Of the socket's path."""
        self._accepts_ns = 0
        """No connection is taken before this: there was no place or no descriptor."""
        self._peers: dict[bytes, _Peer] = {}
        self._names = count(1)
        self.has_newcomer = False
        """Somebody's first message waits to be taken."""

    def hold(self) -> None:
        """Bind, if we are not bound or somebody has removed our socket file or its key.

        Raises OSError where that cannot be done now. Whoever is connected stays so.
        """
        if self._is_there():
            return
        make_safe(os.path.dirname(self.path))
        self._close_listener()
        self._listener = self._bind()

    def serve(self, for_ns: int) -> None:
        """Take connections, read and send for so long. Returns earlier when it is woken, somebody's
        first message has come, or there is nothing to wait for. Never raises for what a peer does.
        """
        began_ns = clock.now_ns()
        until_ns = began_ns + for_ns
        # A process that was restored on another machine finds its clock set back.
        while began_ns <= (now_ns := clock.now_ns()) < until_ns:
            waits = self._waits(now_ns)
            if not waits:
                return
            if not self._handle(_poll(waits, -(-(until_ns - now_ns) // 1_000_000))):
                return
            if self.has_newcomer:
                return

    def wake(self) -> None:
        """End `serve`; called by another thread, once, before the end. Takes no descriptor: a
        listener that is shut down is readable."""
        listener = self._listener
        if listener is not None and identity_of(listener.fileno()) == self._file:
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # not every system can: then the turn's end comes first

    def receive(self, most: int) -> list[tuple[bytes, bytes]]:
        """What has arrived, as (peer, message), at most `most`; never waits."""
        self._handle(_poll(self._waits(clock.now_ns()), 0))
        self.has_newcomer = False
        arrived: list[tuple[bytes, bytes]] = []
        each = max(1, most // max(1, len(self._peers)))
        for name, peer in list(self._peers.items()):
            taken = peer.protocol.messages[: min(each, most - len(arrived))]
            del peer.protocol.messages[: len(taken)]
            peer.known = peer.known or bool(taken)
            arrived += [(name, message) for message in taken]
        return arrived

    def send(self, peer: bytes, *frame: bytes) -> bool:
        """Send a frame, given in pieces, or drop it: a monitor that does not read never holds
        anything up. Whether it is on its way."""
        found = self._peers.get(peer)
        if found is None or found.waiting_bytes > MOST_WAITING_BYTES:
            return False
        header = frame_header(sum(map(len, frame)))
        found.queue(header + frame[0])
        for piece in frame[1:]:
            found.queue(piece)
        self._with(peer, _Peer.flush)
        return True

    def pid_of(self, peer: bytes) -> int | None:
        """The process at the other end, 0 where the kernel does not know it; None once the
        connection is closed."""
        found = self._peers.get(peer)
        return None if found is None else found.pid

    def drop(self, peer: bytes) -> None:
        """End a connection, and forget what waits for it."""
        found = self._peers.pop(peer, None)
        if found is not None:
            _close(found.socket, found.is_ours())

    def close(self) -> None:
        """Send what still waits, for a twentieth of a second at most; unbind, remove the file."""
        until_ns = clock.now_ns() + 50_000_000
        while clock.now_ns() < until_ns:
            waits = {
                peer.socket.fileno(): select.POLLOUT
                for peer in self._peers.values()
                if peer.waiting and peer.is_ours()
            }
            if not waits:
                break
            self._handle(_poll(waits, 10))
        is_there = self._is_there()
        for name in list(self._peers):
            self.drop(name)
        self._close_listener()
        try:
            if is_there:
                os.unlink(self.path)
                remove_key(self.path)
        except OSError:
            pass  # nobody may

    def abandon(self) -> None:
        """In a forked child: let go of what the parent holds, without a word to anybody."""
        for name in list(self._peers):
            self.drop(name)
        self._close_listener()

    # ------------------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        try:
            return (
                self._listener is not None
                and identity_of(self._listener.fileno()) == self._file
                and os.stat(self.path).st_ino == self._inode
                and os.path.exists(key_path(self.path))
            )
        except OSError:
            return False

    def _bind(self) -> socket.socket:
        if len(os.fsencode(self.path)) > LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), self.path)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            check_spare(made.fileno())
            made.setblocking(False)
            write_key(self.path, self.key)
            try:
                made.bind(self.path)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                os.unlink(self.path)  # named by pid and start time: it is ours, or nobody's
                made.bind(self.path)
            made.listen(BACKLOG)
            self._inode = os.stat(self.path).st_ino
            self._file = identity_of(made.fileno())
        except OSError as error:
            made.close()
            if error.errno is None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), self.path) from None
        return made

    def _close_listener(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            _close(listener, identity_of(listener.fileno()) == self._file)

    def _waits(self, now_ns: int) -> dict[int, int]:
        """Descriptors to be asked for, and what for. Who stalls or never greets is dropped."""
        waits: dict[int, int] = {}
        for name, peer in list(self._peers.items()):
            late = not peer.protocol.ready and now_ns - peer.received_ns > HANDSHAKE_NS
            stalled = peer.waiting and now_ns - peer.sent_ns > STALLED_NS
            if late or stalled or not peer.is_ours():
                self.drop(name)
                continue
            reads = len(peer.protocol.messages) < MOST_REQUESTS
            events = select.POLLIN * reads | select.POLLOUT * bool(peer.waiting)
            waits[peer.socket.fileno()] = events
        listener = self._listener
        if listener is not None and now_ns >= self._accepts_ns:
            if identity_of(listener.fileno()) == self._file:
                waits[listener.fileno()] = select.POLLIN
            else:
                self._close_listener()
        return waits

    def _handle(self, ready: list[tuple[int, int]]) -> bool:
        """Do what can be done without waiting; returns False when `wake` was called."""
        names = {peer.socket.fileno(): name for name, peer in self._peers.items()}
        listener = self._listener
        for number, events in ready:
            if listener is not None and number == listener.fileno():
                if events == select.POLLIN:
                    self._accept(listener)
                else:
                    ready = []
            elif (name := names.get(number)) is not None:
                if events & select.POLLIN:
                    self._with(name, self._read)
                elif events & ~select.POLLOUT:
                    self.drop(name)
                self._with(name, _Peer.flush)
        return bool(ready)

    def _accept(self, listener: socket.socket) -> None:
        """One connection, if there is a place and a descriptor for it; else it waits in the
        kernel's queue."""
        now_ns = clock.now_ns()
        if not (self._has_place(now_ns) and is_spare(listener.fileno())):
            self._accepts_ns = now_ns + 250_000_000
            return
        try:
            connected, _ = listener.accept()
        except BlockingIOError:
            return  # it has left already
        except OSError:
            self._accepts_ns = now_ns + 250_000_000
            return
        connected.setblocking(False)
        pid, uid = _credentials(connected)
        if uid not in (os.getuid(), 0):
            connected.close()
            return
        name = b"%d" % next(self._names)
        self._peers[name] = _Peer(connected, pid, now_ns)
        self._with(name, _Peer.flush)

    def _read(self, peer: _Peer) -> None:
        """Raises OSError where it has left, ProtocolError where it uses another protocol."""
        try:
            data = peer.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError
        if peer.protocol.ready:
            peer.received_ns = clock.now_ns()
        peer.protocol.feed(data)
        if peer.protocol.messages and not peer.known:
            self.has_newcomer = True

    def _has_place(self, now_ns: int) -> bool:
        if len(self._peers) < MOST_CONNECTIONS:
            return True
        name = min(self._peers, key=lambda one: self._peers[one].received_ns)
        if now_ns - self._peers[name].received_ns < IDLE_NS:
            return False
        self.drop(name)
        return True

    def _with(self, name: bytes, does: Callable[[_Peer], None]) -> None:
        """Something with a peer, if it is still there; it is not any more where that fails."""
        peer = self._peers.get(name)
        if peer is None:
            return
        try:
            does(peer)
        except OSError:
            self.drop(name)
        except ProtocolError:
            try:
                peer.flush()  # an ERROR may carry the reason
            except OSError:
                pass
            self.drop(name)


def _poll(waits: dict[int, int], most_ms: int) -> list[tuple[int, int]]:
    """Descriptors that are ready, with what for. `poll` takes none of its own, unlike `epoll`."""
    poll = select.poll()
    for number, events in waits.items():
        poll.register(number, events)
    return poll.poll(most_ms)


def _credentials(connected: socket.socket) -> tuple[int, int]:
    """pid and uid of the peer, by the kernel. Where that does not know, no pid and our own user:
    the directory keeps the others out."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0, os.getuid()
    pid, uid, _ = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, option, _PEER.size))
    return pid, uid


def _close(one: socket.socket, is_ours: bool) -> None:
    """Close it, unless its number is another file's by now."""
    if is_ours:
        one.close()
    else:
        one.detach()
