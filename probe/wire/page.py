"""The state page: one memfd that says who a training process is and what it is doing now.

A monitor finds it as `/proc/PID/fd/N -> /memfd:gpuwatch-v1`, reads it without asking anybody, and
can do so while a C call holds the GIL or after a SIGKILL as long as a descriptor lives.

Layout (little endian, offsets in bytes):

====== =====================================================================
0      8 words of 8 bytes, see the ``WORD_*`` indices
64     magic, layout version, hello length, ring geometry (``HEADER``)
128    the hello, JSON, at most ``HELLO_BYTES``
8192   a ring of ``RING_ROWS`` rows of ``ROW`` (the last steps, for a post-mortem)
====== =====================================================================

The words are single aligned 8-byte stores by one writer each, so a reader never sees half of one.
A row is valid when its first and last fields (the step number, written last and first) agree.
"""

import struct
from typing import Final, NamedTuple

NAME: Final = "gpuwatch-v1"
"""The memfd's name; the version in it is the layout's."""
MAGIC: Final = b"gpuwatch"
LAYOUT_VERSION: Final = 1

WORD_OPEN: Final = 0
"""The last mark: ``perf_counter_ns << 8 | kind`` (marks.py). Written by the publisher, so it is up
to a quarter of a second old, and as old as the heartbeat while a C call holds the GIL: a store by
the training thread costs 0.5 us in a real loop, 3 us a step."""
WORD_STEPS: Final = 1
"""Steps completed, written by the publisher."""
WORD_HEARTBEAT: Final = 2
"""perf_counter_ns of the publisher's last wake-up: old while a C call holds the GIL."""
WORD_LOST_MARKS: Final = 3
"""Marks that a full ring dropped."""
WORD_STATE: Final = 4
"""One of the ``STATE_*`` values."""
WORD_ROWS: Final = 5
"""Rows written to the ring since the start; the newest is at ``(value - 1) % RING_ROWS``."""
WORDS: Final = 8

STATE_ARMED: Final = 1
STATE_DISARMED: Final = 2
"""A hook of ours failed; the run goes on unwatched. The reason is in the hello's `fault`."""
STATE_UNINSTALLED: Final = 3
STATE_ENDED: Final = 4
"""The interpreter is leaving normally."""

HEADER: Final = struct.Struct("<8sIIII")
HEADER_OFFSET: Final = 64
HELLO_OFFSET: Final = 128
HELLO_BYTES: Final = 8064
RING_OFFSET: Final = 8192
RING_ROWS: Final = 256
ROW: Final = struct.Struct("<QQQQQQQQQQ")
"""number, start_ns, end_ns, data_ns, forward_ns, backward_ns, optimizer_ns, other_ns, named_ns
(evaluation, checkpoint, compile, user phases together), number again."""
SIZE: Final = RING_OFFSET + RING_ROWS * ROW.size


class OpenMark(NamedTuple):
    """The last mark of the training thread."""

    kind: int
    t_ns: int


def pack_open(kind: int, t_ns: int) -> int:
    """One word for a mark: time in the upper 56 bits (832 days of ns x 2^5), kind below."""
    return t_ns << 8 | kind


def unpack_open(word: int) -> OpenMark:
    """The inverse of `pack_open`."""
    return OpenMark(word & 0xFF, word >> 8)


class PageHeader(NamedTuple):
    """What the header says of the rest of the page."""

    version: int
    hello_bytes: int
    ring_rows: int
    row_bytes: int


def pack_header(hello_bytes: int) -> bytes:
    """The header of a page whose hello is `hello_bytes` long."""
    return HEADER.pack(MAGIC, LAYOUT_VERSION, hello_bytes, RING_ROWS, ROW.size)


def unpack_header(page: bytes | memoryview) -> PageHeader:
    """The header of a whole page.

    Raises ValueError when the page is not ours, is cut short, or has another layout's version.
    """
    if len(page) < RING_OFFSET:
        raise ValueError(f"a state page has at least {RING_OFFSET} bytes, this has {len(page)}")
    magic, version, hello_bytes, ring_rows, row_bytes = HEADER.unpack_from(page, HEADER_OFFSET)
    if magic != MAGIC:
        raise ValueError("not a gpuwatch state page")
    if version != LAYOUT_VERSION:
        raise ValueError(f"the page has layout {version}, this gpuwatch reads {LAYOUT_VERSION}")
    if hello_bytes > HELLO_BYTES or row_bytes != ROW.size or not 0 < ring_rows <= 65536:
        raise ValueError("the page's header does not describe a page of this layout")
    return PageHeader(version, hello_bytes, ring_rows, row_bytes)
