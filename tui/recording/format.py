"""The file: a magic word, a version, a header, and frames that can each be checked.

    8 bytes   GPUWATCH
    u16 u32   version, length of the header (little-endian, as everywhere)
    n bytes   the header, JSON
    u32       CRC-32 of the header
    frames    u32 length, u32 CRC-32 of what follows, i64 until_ns, then `length` bytes

A frame begins with a u32, the length of its piece of a stream of raw deflate that goes through all
frames; the bits of the figures follow as they are. The stream is flushed with every frame, so that
whatever was written before a crash is readable. A frame of length 0 says that the recording was
ended in order. `until_ns` lets a reader know how long the recording is without unpacking it.
"""

import struct
from typing import Final

import msgspec

from ..model.observations import AnyObservation, Observation

MAGIC: Final = b"GPUWATCH"
VERSION: Final = 1
"""Raised when a reader of today would misread; observations may gain fields without it."""
SUFFIX: Final = ".gpuwatch"

PREFIX: Final = struct.Struct("<8sHI")
HEADER_CHECK: Final = struct.Struct("<I")
FRAME: Final = struct.Struct("<IIq")
PACKED: Final = struct.Struct("<I")

MOST_HEADER_BYTES: Final = 65_536
MOST_FRAME_BYTES: Final = 8 * 1024 * 1024
MOST_CHUNK_BYTES: Final = 16 * 1024 * 1024
"""Of a frame, unpacked: a small file cannot fill the memory."""
LATEST_NS: Final = 1 << 62
"""A century of `perf_counter_ns`: what lies beyond is no time."""


class Looked(Observation, frozen=True, kw_only=True, tag="looked"):
    """The session judged at this moment: a replay judges there and nowhere else."""


Entry = AnyObservation | Looked
"""What a recording is a sequence of."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when the recording begins."""

    gpuwatch: str
    """Version of the monitor."""
    probe: str
    """Version of the probe; "" where nobody said."""
    torch: str | None
    host: str
    pid: int
    script: str
    started_ns: int
    """When the session began, by the clock of the entries' `t_ns`."""
    started_unix: float
    """The same moment, in seconds since 1970."""
    begins_ns: int
    """Where playing begins. What was taken before is what the session needs to know."""


class MalformedError(ValueError):
    """Bytes that no writer of this version has written."""
