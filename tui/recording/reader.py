"""Reads a recording. Whatever the bytes are, it ends with entries or with a clear error."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from ..errors import ORIGIN, UsageError
from . import format as form
from .chunks import ChunkReader
from .format import FRAME, MAGIC, PREFIX, VERSION, Entry, Header, MalformedError

CRASHED: Final = "it was not ended in order: the last second may be missing"
DAMAGED: Final = "the rest of the file is damaged"


class Recording:
    """A recording on the disk, open for reading. Its file is closed by `close`."""

    until_ns: int
    """Time of the last entry, as far as it can be known without inflating."""
    ends_early: str | None
    """Why something is missing at the end; None where nothing is. `entries` may find more."""

    def __init__(self, path: Path) -> None:
        """Reads the header, and how long the recording is.

        Raises a UsageError where it cannot be read, is no recording, or has another version.
        """
        self.path = path
        try:
            self._file: IO[bytes] = path.open("rb")
            try:
                self.header = _header(path, self._file)
                self._first = self._file.tell()
                self.until_ns, self.ends_early = self._measured()
            except BaseException:
                self._file.close()
                raise
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            fix = "gpuwatch record PID -o FILE writes one"
            raise UsageError(f"{path} cannot be read", why, fix) from None

    def entries(self) -> Iterator[Entry]:
        """All entries, in order, read as they are asked for.

        What is damaged is the end: `ends_early` says so from then on.
        """
        inflate, chunks, at = zlib.decompressobj(wbits=-zlib.MAX_WBITS), ChunkReader(), self._first
        while True:
            try:
                if not (data := self._frame(at)):
                    return
                at += FRAME.size + len(data)
                chunk = inflate.decompress(data + form.FLUSHED, form.MOST_CHUNK_BYTES)
                if inflate.unconsumed_tail or inflate.eof:
                    raise MalformedError("too much in a frame, or the last of its stream")
                entries = chunks.unpack(chunk)
            except (EOFError, ValueError, zlib.error, OSError) as error:
                is_cut = isinstance(error, EOFError)
                self.ends_early = (self.ends_early or CRASHED) if is_cut else DAMAGED
                return
            yield from entries

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _measured(self) -> tuple[int, str | None]:
        """Time of the last whole frame, and why the recording ends there."""
        at, until_ns = self._first, self.header.begins_ns
        size = os.fstat(self._file.fileno()).st_size
        while at + FRAME.size <= size:
            self._file.seek(at)
            length, _, frame_ns = FRAME.unpack(self._file.read(FRAME.size))
            if length > form.MOST_FRAME_BYTES or not until_ns <= frame_ns < form.LATEST_NS:
                return until_ns, DAMAGED
            at += FRAME.size + length
            if at > size:
                break
            until_ns = frame_ns
            if length == 0:
                return until_ns, None
        return until_ns, CRASHED

    def _frame(self, at: int) -> bytes:
        """What the frame at this place holds.

        Raises EOFError where the file ends in it, MalformedError where it is damaged.
        """
        self._file.seek(at)
        head = self._file.read(FRAME.size)
        length, _, until_ns = FRAME.unpack(head.ljust(FRAME.size, b"\0"))
        data = self._file.read(min(length, form.MOST_FRAME_BYTES))
        if len(head) < FRAME.size or len(data) < min(length, form.MOST_FRAME_BYTES):
            raise EOFError
        if not form.frame(data, until_ns).startswith(head):
            raise MalformedError("a frame that is too long or has changed")
        return data


def _header(path: Path, file: IO[bytes]) -> Header:
    prefix = file.read(PREFIX.size)
    if prefix[: len(MAGIC)] != MAGIC[: len(prefix)]:
        raise _no_recording(path, "it does not begin as one")
    if len(prefix) < PREFIX.size:
        raise _no_recording(path, "it ends in its first line" if prefix else "the file is empty")
    _, version, length = PREFIX.unpack(prefix)
    if version != VERSION:
        age, fix = "a newer", f"update it: pip install --upgrade {ORIGIN}"
        if version < VERSION:
            age, fix = "an older", "record the run again: gpuwatch record PID -o FILE"
        why = f"the format has changed: the file has version {version}, this gpuwatch {VERSION}"
        raise UsageError(f"{path.name} was recorded by {age} gpuwatch", why, fix)
    data = file.read(min(length, form.MOST_HEADER_BYTES))
    if len(data) < length or file.read(form.CHECK.size) != form.CHECK.pack(zlib.crc32(data)):
        raise _no_recording(path, "its header is damaged or not all there")
    try:
        header = msgspec.json.decode(data, type=Header)
        is_time = 0 <= header.started_unix < form.LATEST_UNIX_S
        if is_time and 0 <= header.started_ns <= header.begins_ns < form.LATEST_NS:
            return header
    except ValueError:
        pass
    raise _no_recording(path, "its header makes no sense")


def _no_recording(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path.name} is not a recording", why, "gpuwatch record PID -o FILE makes one"
    )
