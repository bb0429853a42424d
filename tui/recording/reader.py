"""Reads a recording. Whatever the bytes are, it ends with entries or with a clear word."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from ..errors import GpuwatchError, UsageError
from .chunk_reader import ChunkReader
from .chunks import Chunk
from .format import (
    FRAME,
    HEADER_CHECK,
    LATEST_NS,
    MAGIC,
    MOST_CHUNK_BYTES,
    MOST_FRAME_BYTES,
    MOST_HEADER_BYTES,
    PACKED,
    PREFIX,
    VERSION,
    Entry,
    Header,
    MalformedError,
)
from .writer import FLUSHED, frame

CRASHED: Final = "it was not ended in order: the last second may be missing"
DAMAGED: Final = "the rest of the file is damaged"


class Recording:
    """A recording on the disk, open for reading. Its file is closed by `close`."""

    def __init__(self, path: Path) -> None:
        """Reads the header, and how long the recording is.

        Raises a GpuwatchError where it cannot be read, is no recording, or is a newer one.
        """
        self.path = path
        try:
            self._file: IO[bytes] = path.open("rb")
        except OSError as error:
            raise _unreadable(path, error) from None
        try:
            self.header = _header(path, self._file)
            self._first = self._file.tell()
            self.until_ns, self.ends_early = self._measured()
        except OSError as error:
            self._file.close()
            raise _unreadable(path, error) from None
        except BaseException:
            self._file.close()
            raise

    until_ns: int
    """Time of the last entry, as far as it can be known without unpacking."""
    ends_early: str | None
    """Why something is missing at the end; None where nothing is. `entries` may find more."""

    def entries(self) -> Iterator[Entry]:
        """All entries, in order, unpacked as they are asked for.

        What is damaged is the end: `ends_early` says so from then on.
        """
        inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        chunks = ChunkReader()
        at = self._first
        while True:
            try:
                data = self._frame(at)
                if not data:
                    return
                at += FRAME.size + len(data)
                entries = chunks.entries(_unpacked(data, inflate))
            except EOFError:
                self.ends_early = self.ends_early or CRASHED
                return
            except (MalformedError, zlib.error, OSError):
                self.ends_early = DAMAGED
                return
            yield from entries

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _measured(self) -> tuple[int, str | None]:
        """Time of the last whole frame, and whether the mark of an orderly end is there."""
        at, until_ns = self._first, self.header.begins_ns
        size = os.fstat(self._file.fileno()).st_size
        while at + FRAME.size <= size:
            self._file.seek(at)
            length, _, frame_ns = FRAME.unpack(self._file.read(FRAME.size))
            if length > MOST_FRAME_BYTES or not until_ns <= frame_ns < LATEST_NS:
                return until_ns, DAMAGED
            at += FRAME.size + length
            if at > size:
                break
            until_ns = frame_ns
            if length == 0:
                return until_ns, None
        return until_ns, CRASHED

    def _frame(self, at: int) -> bytes:
        """The bytes of the frame at this place.

        Raises EOFError where the file ends in it, MalformedError where it is damaged.
        """
        self._file.seek(at)
        head = self._file.read(FRAME.size)
        if len(head) < FRAME.size:
            raise EOFError
        length, _, until_ns = FRAME.unpack(head)
        if length > MOST_FRAME_BYTES:
            raise MalformedError("a frame that is too long")
        data = self._file.read(length)
        if len(data) < length:
            raise EOFError
        if not frame(data, until_ns).startswith(head):
            raise MalformedError("a frame that has changed")
        return data


def _unpacked(data: bytes, inflate: "zlib._Decompress") -> Chunk:
    if len(data) < PACKED.size:
        raise MalformedError("a frame that is too short")
    (length,) = PACKED.unpack_from(data)
    packed, noise = data[PACKED.size : PACKED.size + length], data[PACKED.size + length :]
    told = inflate.decompress(packed + FLUSHED, MOST_CHUNK_BYTES)
    if inflate.unconsumed_tail or inflate.eof:
        raise MalformedError("a frame that unpacks to too much, or is the last of its stream")
    return Chunk(told, noise)


def _header(path: Path, file: IO[bytes]) -> Header:
    prefix = file.read(PREFIX.size)
    if not prefix:
        raise _no_recording(path, "the file is empty")
    if prefix[: len(MAGIC)] != MAGIC[: len(prefix)]:
        raise _no_recording(path, "it does not begin as one")
    if len(prefix) < PREFIX.size:
        raise _no_recording(path, "it ends in its first line")
    _, version, length = PREFIX.unpack(prefix)
    if version > VERSION:
        raise UsageError(
            f"{path.name} was recorded by a newer gpuwatch",
            f"it has version {version} of the format, this gpuwatch reads {VERSION}",
            "update it: pip install --upgrade gpuwatch-torch",
        )
    data = file.read(length) if version == VERSION and length <= MOST_HEADER_BYTES else b""
    check = file.read(HEADER_CHECK.size)
    if len(data) < length or check != HEADER_CHECK.pack(zlib.crc32(data)):
        raise _no_recording(path, "its header is damaged or not all there")
    try:
        header = msgspec.json.decode(data, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _no_recording(path, "its header makes no sense") from None
    if not 0 <= header.started_ns <= header.begins_ns < LATEST_NS:
        raise _no_recording(path, "its header makes no sense")
    return header


def _no_recording(path: Path, why: str) -> GpuwatchError:
    return UsageError(
        f"{path.name} is not a recording",
        why,
        "gpuwatch record PID -o FILE makes one",
    )


def _unreadable(path: Path, error: OSError) -> GpuwatchError:
    return UsageError(
        f"{path} cannot be read",
        os.strerror(error.errno) if error.errno else str(error),
        "gpuwatch replay FILE wants a file that gpuwatch record has written",
    )
