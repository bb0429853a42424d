"""Entries become bytes."""

from collections.abc import Sequence
from typing import Any

import msgspec

from .chunks import MOST_COLUMNS, MOST_PLACES, MOST_VALUES, Chunk, Node, TooLargeError
from .columns import ColumnWriter
from .differences import Differences
from .format import Entry
from .kinds import Kind, kind_of_int, number_of_float
from .texts import TextWriter
from .varints import put_varint


class ChunkWriter:
    """Entries in, bytes out. What it said before is not said again."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._fresh = True
        self._differences = Differences(packing=True)
        self._texts = TextWriter()
        self._nodes: list[Node[ColumnWriter]] = []
        self._root = self._node()
        self._values = 0

    def chunk(self, entries: Sequence[Entry]) -> Chunk:
        """These entries as bytes. Raises TooLargeError where a reader would refuse them."""
        if self._texts.is_half_full or len(self._nodes) > MOST_COLUMNS // 2:
            self._begin()
        self._values = 0
        for entry in entries:
            self._put(self._root, self._differences.through(entry))
        if self._values > MOST_VALUES or len(self._nodes) > MOST_COLUMNS or self._texts.is_too_full:
            raise TooLargeError(f"{self._values} values at once")
        out = bytearray((self._fresh,))
        self._fresh = False
        put_varint(out, len(entries))
        out += self._texts.take()
        noise = bytearray()
        before = -1
        for node in self._nodes:
            names, differences = node.column.take()
            if names or differences:
                put_varint(out, node.number - before)
                put_varint(out, len(names))
                put_varint(out, len(differences))
                out += names
                noise += differences
                before = node.number
        return Chunk(bytes(out), bytes(noise))

    def _node(self) -> Node[ColumnWriter]:
        node: Node[ColumnWriter] = Node(len(self._nodes), ColumnWriter())
        self._nodes.append(node)
        return node

    def _part(self, node: Node[ColumnWriter], position: int) -> Node[ColumnWriter]:
        if position == len(node.parts):
            node.parts.append(self._node())
        return node.parts[position]

    def _put(self, node: Node[ColumnWriter], value: Any) -> None:
        self._values += 1
        column = node.column
        if value is None:
            column.put(Kind.NONE, 0)
        elif value is True or value is False:
            column.put(Kind.BOOL, int(value))
        elif isinstance(value, int):
            column.put(kind_of_int(value, column.kind), value)
        elif isinstance(value, float):
            column.put(*number_of_float(value, column.kind))
        elif isinstance(value, str):
            column.put(Kind.TEXT, self._texts.number(value))
        elif isinstance(value, msgspec.Struct):
            self._put_struct(node, value)
        elif isinstance(value, dict):
            self._put_pairs(node, value)
        elif value and isinstance(value[0], str):
            column.put(Kind.TEXTS, self._texts.number(tuple(value)))
        elif isinstance(value, tuple):
            column.put(Kind.PLACES, len(value))
            for place, item in enumerate(value):
                self._put(self._part(node, min(place, MOST_PLACES)), item)
        else:
            column.put(Kind.ROWS, len(value))
            for item in value:
                self._put(self._part(node, 0), item)

    def _put_struct(self, node: Node[ColumnWriter], value: msgspec.Struct) -> None:
        config = value.__struct_config__
        if not config.array_like:
            self._put_pairs(node, msgspec.structs.asdict(value))
            return
        if config.tag is not None:
            number = self._texts.number(str(config.tag))
            node.column.put(Kind.TAGGED, number)
            if number not in node.tagged:
                node.tagged[number] = self._node()
            node = node.tagged[number]
        fields = msgspec.structs.astuple(value)
        node.column.put(Kind.RECORD, len(fields))
        for position, field in enumerate(fields):
            self._put(self._part(node, position), field)

    def _put_pairs(self, node: Node[ColumnWriter], value: dict[str, Any]) -> None:
        node.column.put(Kind.PAIRS, self._texts.number(tuple(value)))
        for position, item in enumerate(value.values()):
            self._put(self._part(node, position), item)
