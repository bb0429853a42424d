"""Writes a recording to an open file, readable up to the last `write` whatever happens next."""

import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Final

import msgspec

from .chunk_writer import ChunkWriter
from .chunks import TooLargeError
from .format import (
    FRAME,
    HEADER_CHECK,
    LATEST_NS,
    MAGIC,
    MOST_CHUNK_BYTES,
    MOST_FRAME_BYTES,
    PACKED,
    PREFIX,
    VERSION,
    Entry,
    Header,
)
from .weight import rows_of

ROWS_A_CHUNK: Final = 5_000
"""Steps and the like: some 200,000 values. Keeps what a reader unpacks at once small."""
FLUSHED: Final = b"\x00\x00\xff\xff"
"""How deflate ends a flush; every frame would end with it, so none does."""


class RecordingWriter:
    """Puts the header into an unbuffered file, then entries, then the mark of an orderly end.

    Every method raises OSError where the file takes no more. `write` leaves whole frames only: one
    that the disk had no room for is taken back.
    """

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file = file
        self._chunks = ChunkWriter()
        self._deflate = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
        self._until_ns = header.begins_ns
        data = msgspec.json.encode(header)
        check = HEADER_CHECK.pack(zlib.crc32(data))
        self._put(PREFIX.pack(MAGIC, VERSION, len(data)) + data + check)

    def write(self, entries: Sequence[Entry]) -> None:
        """Write entries and flush. Raises TooLargeError for one that no frame can hold."""
        for few in _portions(entries):
            told, noise = self._chunks.chunk(few)
            packed = self._deflate.compress(told) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            packed = packed.removesuffix(FLUSHED)
            data = PACKED.pack(len(packed)) + packed + noise
            if len(told) > MOST_CHUNK_BYTES or len(data) > MOST_FRAME_BYTES:
                raise TooLargeError(f"{len(told)} bytes at once")
            newest_ns = max(entry.t_ns for entry in few)
            self._until_ns = min(max(self._until_ns, newest_ns), LATEST_NS - 1)
            self._frame(data)

    def end(self) -> None:
        """Say that nothing is missing at the end."""
        self._frame(b"")

    def _frame(self, data: bytes) -> None:
        self._put(frame(data, self._until_ns))

    def _put(self, data: bytes) -> None:
        before = self._file.tell()
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._take_back(before)
            raise

    def _take_back(self, size: int) -> None:
        try:
            self._file.truncate(size)
        except OSError:
            pass  # a reader leaves an unfinished frame aside


def frame(data: bytes, until_ns: int) -> bytes:
    """A frame of these bytes."""
    check = zlib.crc32(data, zlib.crc32(until_ns.to_bytes(8, "little", signed=True)))
    return FRAME.pack(len(data), check, until_ns) + data


def _portions(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    portion: list[Entry] = []
    rows = 0
    for entry in entries:
        portion.append(entry)
        rows += rows_of(entry)
        if rows >= ROWS_A_CHUNK:
            yield portion
            portion, rows = [], 0
    if portion:
        yield portion
