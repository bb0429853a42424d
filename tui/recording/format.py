"""The file: a magic word, a version, a header, and frames that can each be checked.

    8 bytes   GPUWATCH
    u16 u32   version, length of the header (little-endian, as everywhere)
    n bytes   the header, JSON
    u32       CRC-32 of the header
    frames    u32 length, u32 CRC-32 of what follows, i64 until_ns, then `length` bytes

All frames hold one stream of raw deflate, flushed with every frame: what was written before a crash
is readable. A frame inflates to one chunk in msgpack. A frame of length 0 is the orderly end.
`until_ns`, the time of the last entry so far, gives the recording's length without inflating it.
"""

import struct
import zlib
from typing import Final

import msgspec

from ..messages import Noted
from ..model.noted import Figure, NotFinite
from ..model.observations import AnyObservation, Observation
from ..steps import GpuMemory, MemoryPoint, RunEvent

MAGIC: Final = b"GPUWATCH"
VERSION: Final = 2
"""Raised when a reader of today would misread; observations may gain fields without it."""
SUFFIX: Final = ".gpuwatch"

PREFIX: Final = struct.Struct("<8sHI")
CHECK: Final = struct.Struct("<I")
FRAME: Final = struct.Struct("<IIq")
FLUSHED: Final = b"\x00\x00\xff\xff"
"""How deflate ends a flush. Every frame would end with it, so none does."""

MOST_HEADER_BYTES: Final = 65_536
MOST_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""Inflated: a small file cannot fill the memory."""
MOST_FRAME_BYTES: Final = MOST_CHUNK_BYTES + 65_536
LATEST_NS: Final = 1 << 62
"""A century of `perf_counter_ns`: what lies beyond is no time."""
LATEST_UNIX_S: Final = 1e11
"""The same of a calendar: the year 5138. Later ones are none on some systems."""


class Looked(Observation, frozen=True, kw_only=True, tag="looked"):
    """The session judged at this moment: a replay judges there and nowhere else."""


class Past(Observation, frozen=True, kw_only=True, tag="past"):
    """What a session knew of the time before its recording: a replay judges by it as well."""

    gpu_memory: tuple[GpuMemory, ...] = ()
    memory: tuple[MemoryPoint, ...] = ()
    worker_memory: tuple[MemoryPoint, ...] = ()
    moments: tuple[RunEvent, ...] = ()
    """As a verdict's window has them."""
    figures: tuple[Figure, ...] = ()
    not_finite: NotFinite | None = None
    notes: tuple[Noted, ...] = ()
    """What comes once: the FLOPs of a step, or why they were not counted."""

    @property
    def rows(self) -> tuple[msgspec.Struct, ...]:
        """All of them."""
        read = (*self.gpu_memory, *self.memory, *self.worker_memory, *self.moments)
        first = () if self.not_finite is None else (self.not_finite,)
        return (*read, *self.figures, *first, *self.notes)


Entry = AnyObservation | Looked | Past
"""What a recording is a sequence of."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when the recording begins."""

    gpuwatch: str
    """Version of the monitor."""
    probe: str
    """Version of the probe; "" where it is unknown."""
    torch: str | None
    host: str
    pid: int
    script: str
    started_ns: int
    started_unix: float
    """When the session began, by the clock of the entries' `t_ns` and in seconds since 1970."""
    begins_ns: int
    """Where playing begins. What was taken before is what the session needs to know."""


class MalformedError(ValueError):
    """Bytes that no writer of this version has written."""


def frame(data: bytes, until_ns: int) -> bytes:
    """A frame of these bytes."""
    check = zlib.crc32(data, zlib.crc32(until_ns.to_bytes(8, "little", signed=True)))
    return FRAME.pack(len(data), check, until_ns) + data
