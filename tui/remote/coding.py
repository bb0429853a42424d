"""Entries on the link are coded as in a recording: difference columns, one stream of raw deflate.

u8     1 where the coding begins anew: the columns' last values and the deflate stream
u64    number of the last entry so far
i64    the agent's clock when it was sent
u32    entries that were left out so far, for a link too slow for all of them
rest   deflate, flushed; inflates to one chunk
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..recording import format as form
from ..recording.chunks import ChunkReader, ChunkWriter
from ..recording.format import Entry, MalformedError
from .frames import LinkError

HEAD: Final = struct.Struct("<BQqI")
MOST_CHUNK_BYTES: Final = 1 << 20
"""Inflated: of the frames that an agent sends the largest have some 50 kB."""


class Entries(NamedTuple):
    """One frame of them."""

    last: int
    """Number of the last entry so far."""
    now_ns: int
    left_out: int
    entries: list[Entry]


class EntryEncoder:
    """Entries to frame bodies, for one link: a new link needs a new one."""

    def __init__(self) -> None:
        self._chunks = ChunkWriter()
        self._deflate = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
        self._fresh = True

    def encode(self, entries: Sequence[Entry], last: int, now_ns: int, left_out: int) -> bytes:
        """A body; without entries it says how far the agent's clock is. Raises OverflowError where
        a reader would refuse it."""
        fresh, data = self._fresh, b""
        if entries:
            data = self._deflate.compress(self._chunks.pack(entries))
            data += self._deflate.flush(zlib.Z_SYNC_FLUSH)
            data = data.removesuffix(form.FLUSHED)
            self._fresh = False
        return HEAD.pack(fresh, last, now_ns, left_out) + data


class EntryDecoder:
    """The bodies of an EntryEncoder in, entries out."""

    def __init__(self) -> None:
        self._chunks = ChunkReader()
        self._inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)

    def decode(self, body: bytes) -> Entries:
        """Raises LinkError for a body that no encoder has written."""
        if len(body) < HEAD.size:
            raise LinkError("entries that are cut short")
        fresh, last, now_ns, left_out = HEAD.unpack_from(body)
        if not 0 <= now_ns < form.LATEST_NS:
            raise LinkError("a time that no clock shows")
        data = body[HEAD.size :]
        if not data:
            return Entries(last, now_ns, left_out, [])
        if fresh:
            self._chunks = ChunkReader()
            self._inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        try:
            chunk = self._inflate.decompress(data + form.FLUSHED, MOST_CHUNK_BYTES)
            if self._inflate.unconsumed_tail or self._inflate.eof:
                raise LinkError("too much in a frame, or the last of its stream")
            return Entries(last, now_ns, left_out, self._chunks.unpack(chunk))
        except (MalformedError, zlib.error) as error:
            raise LinkError(f"entries that make no sense: {error}") from None
