"""Entries to bytes and back, about a second of them at a time."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from ..model.observations import Delivered
from ..model.plausible import are_counted, is_plausible
from .columns import Columns, Table, Values
from .format import LATEST_NS, MOST_CHUNK_BYTES, Entry, MalformedError, Past

KINDS: Final = {str(kind.__struct_config__.tag): kind for kind in get_args(Entry)}


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Packed columns by the tag of a kind, and of each entry the place of its kind there."""

    order: Values[int]
    tables: dict[str, Columns]


class ChunkWriter:
    """Entries in, bytes out."""

    def __init__(self) -> None:
        self._tables = {tag: Table(kind) for tag, kind in KINDS.items()}

    def pack(self, entries: Sequence[Entry]) -> bytes:
        """A chunk. Raises OverflowError where a reader would refuse it."""
        tags = [str(entry.__struct_config__.tag) for entry in entries]
        rows: dict[str, list[Entry]] = {tag: [] for tag in KINDS if tag in tags}
        places = {tag: place for place, tag in enumerate(rows)}
        for tag, entry in zip(tags, entries, strict=True):
            rows[tag].append(entry)
        tables = {tag: self._tables[tag].pack(own) for tag, own in rows.items()}
        data = msgspec.msgpack.encode(([places[tag] for tag in tags], tables))
        if len(data) > MOST_CHUNK_BYTES:
            raise OverflowError(f"{len(data)} bytes at once")
        return data


class ChunkReader:
    """The chunks of a ChunkWriter in, entries out."""

    def __init__(self) -> None:
        self._tables = {tag: Table(kind) for tag, kind in KINDS.items()}
        self._decode = msgspec.msgpack.Decoder(Chunk).decode

    def unpack(self, data: bytes) -> list[Entry]:
        """The entries. Raises MalformedError for bytes that no writer of this version wrote."""
        try:
            chunk = self._decode(data)
            counts = Counter(chunk.order)
            rows = [
                self._tables[tag].unpack(columns, counts[place])
                for place, (tag, columns) in enumerate(chunk.tables.items())
            ]
            if any(place < 0 for place in counts):
                raise MalformedError("a place before the first")
            entries = [msgspec.convert(next(rows[place]), Entry) for place in chunk.order]
            for entry in entries:
                possible = not isinstance(entry, Delivered) or is_plausible(entry.batch)
                possible = possible and (not isinstance(entry, Past) or are_counted(entry.rows))
                if not possible or not 0 <= entry.t_ns < LATEST_NS:
                    raise MalformedError("figures that no run can have")
            return entries
        except (ValueError, LookupError, OverflowError) as error:
            raise MalformedError(str(error)) from None
