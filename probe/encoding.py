"""Messages to bytes and back with the standard library alone: JSON, which the monitor validates.

Runs on the publisher's thread.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from time import sleep
from typing import Any, Final, NamedTuple

from .identity import Identity
from .rows import Batch, Dump

MOST_REPLY_BYTES: Final = 4 * 1024 * 1024
"""As `messages.MAX_FRAME_BYTES`."""
MOST_REQUEST_BYTES: Final = 4096
ROWS_A_BREATH: Final = 128
"""Rows encoded before the interpreter lock is offered to the training thread: 0.3 ms."""

_encode: Final = json.JSONEncoder(
    check_circular=False, ensure_ascii=False, separators=(",", ":")
).encode


class Subscribe(NamedTuple):
    """A monitor watches."""

    schema: int
    pid: int
    history: bool


class Leave(NamedTuple):
    """A monitor goes away."""

    pid: int


class AskStacks(NamedTuple):
    """Where is every thread?"""


Request = Subscribe | Leave | AskStacks
_REQUESTS: Final[dict[str, tuple[type[Request], tuple[type, ...]]]] = {
    "subscribe": (Subscribe, (int, int, bool)),
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
    if tuple(map(type, fields)) != types or not all(-(2**63) <= it < 2**64 for it in fields):
        raise ValueError(f"fields of {words[0]!r}")
    return kind(*fields)


def encode_greeting(identity: Identity, now_ns: int) -> bytes:
    """The first answer to a new peer."""
    return _bytes(_encode(["hello", asdict(identity), now_ns]))


def encode_bye(reason: str, steps: int) -> bytes:
    """The last message."""
    return _bytes(_encode(["bye", reason, steps]))


def encode_dump(dump: Dump) -> bytes:
    """Where every thread is."""
    return _bytes(_encode(["dump", *dump]))


def encode_batch(batch: Batch) -> bytes:
    """The batch, without its oldest steps where it would be longer than a reader takes.

    A history of steps with many phases of the user's comes to that.
    """
    while True:
        fields = [_encode("batch")]
        for value in batch:
            if isinstance(value, list) and len(value) > ROWS_A_BREATH:
                fields.append("[" + ",".join(_in_breaths(value)) + "]")
            else:
                fields.append(_encode(value))
        frame = _bytes(f"[{','.join(fields)}]")
        if len(frame) <= MOST_REPLY_BYTES or not (batch.steps or batch.gpu_steps):
            return frame
        newer, newer_gpu = len(batch.steps) // 2 + 1, len(batch.gpu_steps) // 2 + 1
        batch = batch._replace(steps=batch.steps[newer:], gpu_steps=batch.gpu_steps[newer_gpu:])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # a file's name may hold any bytes


def _in_breaths(rows: Sequence[Any]) -> Iterator[str]:
    for at in range(0, len(rows), ROWS_A_BREATH):
        yield _encode(rows[at : at + ROWS_A_BREATH])[1:-1]
        sleep(0)
