"""The state page: one memfd with who a training process is and what it is doing now.

A monitor finds it as `/proc/PID/fd/N -> /memfd:gpuwatch-v1`, reads it without asking anybody, and
can do so while a C call holds the GIL or after a SIGKILL as long as a descriptor lives.

Layout (little endian, offsets in bytes):

====== =====================================================================
0      8 words of 8 bytes, see the ``WORD_*`` indices
64     magic, layout version, hello length, ring geometry (``HEADER``)
128    the hello, JSON, at most ``HELLO_BYTES``
8192   the ring of the last marks (marks.py) in two columns: times, then words, eight bytes each.
       Mark `n` has row `n % RING`
====== =====================================================================

The words are single aligned 8-byte stores by one writer each, so a reader never sees half of one.
The rows of the ring are written before ``WORD_MARKS`` counts them. Who reads while the publisher
may write leaves the oldest half out.
"""

import struct
from typing import Final

from .marks import MARK_BYTES, RING

NAME: Final = "gpuwatch-v1"
"""The memfd's name; the version in it is the layout's."""
MAGIC: Final = b"gpuwatch"
LAYOUT_VERSION: Final = 2

WORD_OPEN: Final = 0
"""The last mark: ``perf_counter_ns << 8 | kind`` (marks.py), of which the highest bits may be lost
(`unpack_open`). Written by the publisher, so it is up to a quarter of a second old, and as old as
the heartbeat while a C call holds the GIL: a store by the training thread costs 0.5 us in a real
loop, 3 us a step."""
WORD_STEPS: Final = 1
"""Steps completed, written by the publisher."""
WORD_HEARTBEAT: Final = 2
"""perf_counter_ns of the publisher's last wake-up: old while a C call holds the GIL."""
WORD_LOST_MARKS: Final = 3
"""Times that the recorder was overrun between two turns: each is one mark that is missed."""
WORD_STATE: Final = 4
"""One of the ``STATE_*`` values."""
WORD_MARKS: Final = 5
"""Marks since the start, written by the publisher."""
WORDS: Final = 8

STATE_ARMED: Final = 1
STATE_DISARMED: Final = 2
"""A hook of ours failed; the run goes on unwatched. The reason is in the hello's `fault`."""
STATE_UNINSTALLED: Final = 3
STATE_ENDED: Final = 4
"""The interpreter has left."""
RAISED: Final = "raised "
"""Begins the reason of a good-bye where nobody caught an exception, whose type follows."""

HEADER: Final = struct.Struct("<8sIIII")
HEADER_OFFSET: Final = 64
HELLO_OFFSET: Final = 128
HELLO_BYTES: Final = 8064
RING_OFFSET: Final = 8192
SIZE: Final = RING_OFFSET + RING * MARK_BYTES


_WORD: Final = 2**64 - 1
_TIMES_NS: Final = 1 << 56


def pack_open(kind: int, t_ns: int) -> int:
    """One word for a mark: the kind below, the time in the upper 56 bits. A machine that has been
    up for 834 days needs more of them: `unpack_open` knows those by the heartbeat."""
    return (t_ns << 8 | kind) & _WORD


def unpack_open(word: int, near_ns: int) -> tuple[int, int]:
    """(kind, perf_counter_ns) of the training thread's last mark, of `pack_open`'s word; of all
    such times the one nearest to that of the heartbeat."""
    kind, low_ns = word & 0xFF, word >> 8
    if not kind:
        return kind, low_ns  # no mark was put yet
    return kind, low_ns + round((near_ns - low_ns) / _TIMES_NS) * _TIMES_NS


def pack_header(hello_bytes: int) -> bytes:
    """The header of a page whose hello is `hello_bytes` long."""
    return HEADER.pack(MAGIC, LAYOUT_VERSION, hello_bytes, RING, MARK_BYTES)


def places(since: int, until: int) -> list[tuple[int, int]]:
    """Where the marks from a number up to another stand on the page: (offset, bytes) of the pieces
    that make a message's body, in its order."""
    first, end = since % RING, until % RING
    if since >= until:
        return []
    spans = [(first, end)] if first < end else [(first, RING), (0, end)]
    return [
        (RING_OFFSET + 8 * (column + a), 8 * (b - a))
        for column in (0, RING)
        for a, b in spans
        if b > a
    ]
