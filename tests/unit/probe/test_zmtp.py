"""The protocol as bytes: whole, in pieces, and wrong at each state."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gpuwatch.probe.zmtp import (
    GREETING,
    MOST_HANDSHAKE_BYTES,
    MOST_MESSAGE_BYTES,
    READY,
    REFUSED,
    Connection,
    ProtocolError,
    command,
    frame_header,
    properties,
)

DEALER = command(b"READY", b"\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0")
OLDER_GREETING = GREETING[:11] + b"\0" + GREETING[12:]
"""ZMTP 3.0, as libzmq 4.0 to 4.2 greet."""


def greeted() -> Connection:
    peer = Connection()
    peer.feed(GREETING)
    return peer


def ready() -> Connection:
    peer = greeted()
    peer.feed(DEALER)
    return peer


def message(body: bytes, flags: int = 0) -> bytes:
    return frame_header(len(body), flags) + body


def test_the_greeting_is_the_standards() -> None:
    assert len(GREETING) == 64
    assert GREETING[:12] == b"\xff" + bytes(8) + b"\x7f\x03\x01"
    assert GREETING[12:32] == b"NULL" + bytes(16)
    assert GREETING[32:] == bytes(32)


@pytest.mark.parametrize("greeting", [GREETING, OLDER_GREETING])
@pytest.mark.parametrize("length", [0, 1, 255, 256, MOST_MESSAGE_BYTES])
def test_byte_by_byte_and_all_at_once(greeting: bytes, length: int) -> None:
    body = b"x" * length
    stream = greeting + DEALER + message(body) + message(b"second")
    slow, fast = Connection(), Connection()
    for at in range(len(stream)):
        slow.feed(stream[at : at + 1])
    fast.feed(stream)
    for peer in (slow, fast):
        assert peer.ready
        assert peer.messages == [body, b"second"]
        assert peer.out == [GREETING, READY]


def test_a_short_message_may_come_in_a_long_frame() -> None:
    peer = ready()
    peer.feed(b"\x02" + struct.pack(">Q", 2) + b"hi")
    assert peer.messages == [b"hi"]


def test_a_ping_is_answered_with_its_context() -> None:
    peer = ready()
    peer.out.clear()
    peer.feed(command(b"PING", b"\0\x0acontext") + command(b"PONG") + command(b"SUBSCRIBE", b"a"))
    assert peer.out == [command(b"PONG", b"context")]


def test_a_message_of_several_parts_is_none_and_the_next_one_counts() -> None:
    peer = ready()
    peer.feed(message(b"", 1) + message(b"two", 1) + message(b"three") + message(b"whole"))
    assert peer.messages == [b"whole"]


@pytest.mark.parametrize("kind", [b"SUB", b"PUB", b"PUSH", b"PAIR", b"", b"dealer"])
def test_a_socket_that_does_not_talk_to_a_router_is_answered_so(kind: bytes) -> None:
    peer = greeted()
    with pytest.raises(ProtocolError):
        peer.feed(command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind))
    assert peer.out[-1] == REFUSED
    assert not peer.ready


BAD_GREETINGS = {
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "unversioned": b"\x01\x00",
    "version 2": GREETING[:10] + b"\x01\x05\x00\x00",
    "curve": GREETING[:12] + b"CURVE".ljust(20, b"\0") + bytes(32),
    "signature": b"\xff" + bytes(8) + b"\x7e",
}


@pytest.mark.parametrize("name", BAD_GREETINGS)
def test_what_is_no_greeting_is_refused_as_soon_as_it_can_be(name: str) -> None:
    with pytest.raises(ProtocolError):
        Connection().feed(BAD_GREETINGS[name])


BAD_HANDSHAKES = {
    "a message": message(b"hello"),
    "another command": command(b"PING", b"\0\0"),
    "an error": command(b"ERROR", b"\x02no"),
    "no name": b"\x04\x00",
    "a name that is cut off": b"\x04\x02\x09R",
    "a property that is cut off": command(b"READY", b"\x0bSocket-Type\0\0\xff\xffDEALER"),
    "half a property": command(b"READY", b"\x0bSock"),
    "too long": frame_header(MOST_HANDSHAKE_BYTES + 1, 4),
    "endless": b"\x06" + b"\xff" * 8,
    "unknown flags": b"\x08\x00",
    "a command with more": b"\x05\x00",
}


@pytest.mark.parametrize("name", BAD_HANDSHAKES)
def test_what_is_no_handshake_is_refused(name: str) -> None:
    with pytest.raises(ProtocolError):
        greeted().feed(BAD_HANDSHAKES[name])


@pytest.mark.parametrize(
    "bad", [frame_header(MOST_MESSAGE_BYTES + 1), b"\x02" + b"\xff" * 8, b"\x10\0", b"\x04\0",
            command(b"ERROR", b"")],
)  # fmt: skip
def test_what_is_no_frame_is_refused_before_it_is_held(bad: bytes) -> None:
    peer = ready()
    with pytest.raises(ProtocolError):
        peer.feed(bad)


@given(some.binary(max_size=600), some.sampled_from([b"", GREETING, GREETING + DEALER]))
def test_any_bytes_are_taken_or_refused_and_little_is_held(data: bytes, before: bytes) -> None:
    peer = Connection()
    peer.feed(before)
    with contextlib.suppress(ProtocolError):
        for at in range(0, len(data), 7):
            peer.feed(data[at : at + 7])
    assert len(peer._arrived) <= MOST_MESSAGE_BYTES + 9
    assert sum(map(len, peer.messages)) <= len(data)


@given(some.binary(max_size=80))
def test_any_metadata_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        properties(data)
