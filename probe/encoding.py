"""Messages to bytes and back with the standard library alone: JSON, which the monitor validates.

Runs on the publisher's thread.
"""

import json
from typing import Any, Final, NamedTuple

from .device.budget import PPM
from .dumps import Dump
from .identity import Identity

MOST_REQUEST_BYTES: Final = 4096

_encode: Final = json.JSONEncoder(
    check_circular=False, ensure_ascii=False, separators=(",", ":")
).encode


class Subscribe(NamedTuple):
    """A monitor watches."""

    schema: int
    pid: int
    history: bool
    behind_ns: int = 0
    device_ppm: int = PPM
    key: str = ""


class Leave(NamedTuple):
    """A monitor goes away."""

    pid: int


class AskStacks(NamedTuple):
    """Where is every thread?"""


Request = Subscribe | Leave | AskStacks
_REQUESTS: Final[dict[str, tuple[type[Request], tuple[type, ...]]]] = {
    "subscribe": (Subscribe, (int, int, bool, int, int, str)),
    "leave": (Leave, (int,)),
    "stacks": (AskStacks, ()),
}
"""Of each its fields' types. What is appended by a newer monitor is passed over."""


def decode_request(frame: bytes) -> Request:
    """What a monitor asked. Raises ValueError for a frame that is too long or no request."""
    if len(frame) > MOST_REQUEST_BYTES:
        raise ValueError(f"a request of {len(frame)} bytes")
    try:
        words = json.loads(frame)
    except RecursionError:
        raise ValueError("a request that is nested too deep") from None
    if not isinstance(words, list) or not words or not isinstance(words[0], str):
        raise ValueError("not a request")
    if words[0] not in _REQUESTS:
        raise ValueError(f"Invalid value {words[0][:40]!r}")
    kind, types = _REQUESTS[words[0]]
    fields = words[1 : 1 + len(types)]
    types = types[: max(len(fields), len(types) - len(kind._field_defaults))]
    numbers = [it for it in fields if isinstance(it, int)]
    if tuple(map(type, fields)) != types or not all(-(2**63) <= it < 2**64 for it in numbers):
        raise ValueError(f"fields of {words[0]!r}")
    return kind(*fields)


def encode_greeting(identity: Identity, now_ns: int) -> bytes:
    """The first answer to a new peer."""
    return _bytes(_encode(["hello", identity._asdict(), now_ns]))


def encode_bye(reason: str, steps: int) -> bytes:
    """The last message."""
    return _bytes(_encode(["bye", reason, steps]))


def encode_dump(dump: Dump) -> bytes:
    """Where every thread is."""
    return _bytes(_encode(["dump", *dump]))


def encode_marks(head: tuple[Any, ...], body: bytes) -> bytes:
    """`messages.Marks`: its fields but the last, a line end, the marks themselves."""
    return b"%b\n%b" % (_bytes(_encode(["marks", *head])), body)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # a file's name may hold any bytes
