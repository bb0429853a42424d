"""One connection of ZeroMQ's wire protocol (ZMTP 3.1, RFC 37), as the ROUTER side of it.

Bytes in, messages and answers out: no socket, no clock. The mechanism is NULL; who may connect is
asked of the kernel. libzmq itself stays out of the training process: its assertions call `abort()`,
which no guard of ours would catch.
"""

import struct
from typing import Final

MOST_HANDSHAKE_BYTES: Final = 512
"""Of a command before the handshake is done: a READY has 30, and 255 of identity at most."""
MOST_MESSAGE_BYTES: Final = 4096
"""Of one frame after it."""
MOST_PING_CONTEXT: Final = 16
PEERS: Final = frozenset({b"DEALER", b"ROUTER", b"REQ"})
"""Socket types that may talk to a ROUTER."""

_MORE, _LONG, _COMMAND = 1, 2, 4
_SIGNATURE: Final = b"\xff\0\0\0\0\0\0\0\0\x7f"
_GREETING_BYTES: Final = 64
_VERSION_AT: Final = 10
_MECHANISM_AT: Final = 12
_NULL: Final = b"NULL".ljust(20, b"\0")
GREETING: Final = (_SIGNATURE + b"\x03\x01" + _NULL).ljust(_GREETING_BYTES, b"\0")
_LENGTH: Final = struct.Struct(">Q")
_SHORT: Final = struct.Struct(">BB")


class ProtocolError(ValueError):
    """The peer uses another protocol; the connection is to be closed."""


def frame_header(length: int, flags: int = 0) -> bytes:
    """What stands before a frame of so many bytes."""
    if length < 256:
        return _SHORT.pack(flags, length)
    return bytes((flags | _LONG,)) + _LENGTH.pack(length)


def command(name: bytes, body: bytes = b"") -> bytes:
    """A whole command frame."""
    body = bytes((len(name),)) + name + body
    return frame_header(len(body), _COMMAND) + body


def _property(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + struct.pack(">I", len(value)) + value


READY: Final = command(b"READY", _property(b"Socket-Type", b"ROUTER") + _property(b"Identity", b""))
REFUSED: Final = command(b"ERROR", b"\x13Invalid socket type")


class Connection:
    """What one peer has sent so far. It holds one frame at most."""

    __slots__ = ("_arrived", "_discards", "_greeted", "messages", "out", "ready")

    def __init__(self) -> None:
        self._arrived = bytearray()
        self._greeted = False
        self._discards = False
        """Frames up to the end of this message belong to one of several parts, which is none."""
        self.ready = False
        """The handshake is done: messages may be sent."""
        self.messages: list[bytes] = []
        """Arrived and not yet taken, oldest first."""
        self.out: list[bytes] = [GREETING]
        """To be sent before anything else."""

    def feed(self, data: bytes) -> None:
        """Take bytes, cut anywhere. Raises ProtocolError where the connection has to end; what is
        in `out` may still be sent."""
        arrived = self._arrived
        arrived += data
        if not self._greeted and not self._greets():
            return
        at = 0
        while (end := self._frame_end(at)) is not None:
            body_at, end_at = end
            self._take(arrived[at], bytes(arrived[body_at:end_at]))
            at = end_at
        del arrived[:at]

    # ------------------------------------------------------------------------------------------

    def _greets(self) -> bool:
        """Whether the whole greeting is there. What cannot become one is refused at once."""
        arrived = self._arrived
        if arrived[:1] != b"\xff"[: len(arrived)] or (len(arrived) > 9 and not arrived[9] & 1):
            raise ProtocolError("not ZeroMQ's protocol")
        if len(arrived) > _VERSION_AT and arrived[_VERSION_AT] < 3:
            raise ProtocolError(f"version {arrived[_VERSION_AT]} of the protocol")
        if len(arrived) < _GREETING_BYTES:
            return False
        if arrived[_MECHANISM_AT : _MECHANISM_AT + 20] != _NULL:
            raise ProtocolError("a mechanism other than NULL")
        del arrived[:_GREETING_BYTES]
        self._greeted = True
        self.out.append(READY)
        return True

    def _frame_end(self, at: int) -> tuple[int, int] | None:
        """Where the body of the frame at `at` begins and ends; None until all of it is there."""
        arrived = self._arrived
        if len(arrived) < at + 2:
            return None
        flags = arrived[at]
        if flags & ~(_MORE | _LONG | _COMMAND) or flags & (_MORE | _COMMAND) == _MORE | _COMMAND:
            raise ProtocolError(f"flags {flags:#x} of a frame")
        length, body_at = arrived[at + 1], at + 2
        if flags & _LONG:
            if len(arrived) < at + 9:
                return None
            length, body_at = _LENGTH.unpack_from(arrived, at + 1)[0], at + 9
        if length > (MOST_MESSAGE_BYTES if self.ready else MOST_HANDSHAKE_BYTES):
            raise ProtocolError(f"a frame of {length} bytes")
        return (body_at, body_at + length) if len(arrived) >= body_at + length else None

    def _take(self, flags: int, body: bytes) -> None:
        if flags & _COMMAND:
            self._obey(body)
        elif not self.ready:
            raise ProtocolError("a message before the handshake")
        else:
            whole = not (flags & _MORE or self._discards)
            self._discards = bool(flags & _MORE)
            if whole:
                self.messages.append(body)

    def _obey(self, body: bytes) -> None:
        end = 1 + body[0] if body else 0
        name, rest = body[1:end], body[end:]
        if not name or len(body) < end:
            raise ProtocolError("a command without a name")
        if name == b"ERROR":
            raise ProtocolError("the peer reports an error")
        if not self.ready:
            if name != b"READY":
                raise ProtocolError("a command before READY")
            self._meet(rest)
        elif name == b"PING":
            self.out.append(command(b"PONG", rest[2 : 2 + MOST_PING_CONTEXT]))

    def _meet(self, metadata: bytes) -> None:
        """The peer's READY: what kind of socket it is."""
        kind = properties(metadata).get(b"socket-type", b"")
        if kind not in PEERS:
            self.out.append(REFUSED)
            raise ProtocolError("a socket that does not talk to a ROUTER")
        self.ready = True


def properties(metadata: bytes) -> dict[bytes, bytes]:
    """Of a READY, by their names in small letters. Raises ProtocolError where it is malformed."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(metadata):
        name_end = at + 1 + metadata[at]
        value_at = name_end + 4
        if value_at > len(metadata):
            raise ProtocolError("a property that is cut off")
        value_end = value_at + int.from_bytes(metadata[name_end:value_at], "big")
        if value_end > len(metadata):
            raise ProtocolError("a property that is cut off")
        found[metadata[at + 1 : name_end].lower()] = metadata[value_at:value_end]
        at = value_end
    return found
