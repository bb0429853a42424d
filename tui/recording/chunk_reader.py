"""Bytes become entries again, if they ever were."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ..model.observations import Delivered, is_plausible
from .chunks import MOST_COLUMNS, MOST_DEPTH, MOST_PLACES, MOST_VALUES, Chunk, Node
from .columns import TOLD, ColumnReader
from .differences import Differences
from .format import LATEST_NS, Entry, MalformedError
from .kinds import Kind, float_of
from .texts import TextReader
from .varints import Varints

_SCALARS: Final = frozenset(
    {Kind.NONE, Kind.BOOL, Kind.TEXT, Kind.TENTHS, Kind.KIB_FLOAT, Kind.FLOAT}
)
"""And those of `PLAIN`: what holds nothing else."""


class ChunkReader:
    """Bytes in, entries out, in the order in which they were written."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._differences = Differences(packing=False)
        self._texts = TextReader()
        self._nodes: list[Node[ColumnReader]] = []
        self._fed: dict[int, tuple[Varints, bytes]] = {}
        self._root = self._node()
        self._values = 0

    def entries(self, chunk: Chunk) -> list[Entry]:
        """Raises MalformedError for bytes that no writer of this version has written."""
        try:
            return [self._checked(entry) for entry in self._walked(chunk)]
        except msgspec.ValidationError as error:
            raise MalformedError(str(error)) from None

    def _checked(self, entry: Any) -> Entry:
        differences = msgspec.convert(entry, Entry)
        whole: Entry = self._differences.through(differences)
        if not 0 <= whole.t_ns < LATEST_NS or (
            isinstance(whole, Delivered) and not is_plausible(whole.batch)
        ):
            raise MalformedError("a time that there is not")
        return whole

    def _walked(self, chunk: Chunk) -> Iterable[Any]:
        data, noise = Varints(chunk.told), Varints(chunk.noise)
        if data.next():
            self._begin()
        count = data.next()
        self._texts.read(data)
        fed_before, self._fed = self._fed, {}
        number = -1
        while not data.is_over:
            number += data.next()
            names_bytes, differences_bytes = data.next(), data.next()
            names = Varints(data.bytes(names_bytes))
            self._fed[number] = names, noise.bytes(differences_bytes)
        for node in self._nodes:
            if node.number in self._fed:
                self._feed(node)
            elif node.number in fed_before:
                self._feed(node)
                self._hold(node.column)
        self._values = 0
        self._take_room(count)
        for _ in range(count):
            yield self._value(self._root, 0)

    def _node(self) -> Node[ColumnReader]:
        number = len(self._nodes)
        if number >= MOST_COLUMNS:
            raise MalformedError("too many columns")
        node: Node[ColumnReader] = Node(number, ColumnReader())
        self._feed(node)
        self._nodes.append(node)
        return node

    def _feed(self, node: Node[ColumnReader]) -> None:
        names, differences = self._fed.get(node.number, (Varints(b""), b""))
        node.column.feed(names, differences)

    def _hold(self, column: ColumnReader) -> None:
        """It goes on as before, which half of all values do."""
        if column.is_plain:
            column.held = column.last
        elif column.kind in _SCALARS:
            column.held = self._scalar(column.kind, column.last)

    def _part(self, node: Node[ColumnReader], position: int) -> Node[ColumnReader]:
        if position == len(node.parts):
            node.parts.append(self._node())
        return node.parts[position]

    def _value(self, node: Node[ColumnReader], depth: int) -> Any:
        column = node.column
        number = column.next()
        return number if column.is_plain else self._told(node, column.kind, number, depth)

    def _told(self, node: Node[ColumnReader], kind: Kind | None, number: int, depth: int) -> Any:
        if kind in _SCALARS:
            return self._scalar(kind, number)
        if kind is Kind.TEXTS:
            return self._texts.texts(number)
        if depth >= MOST_DEPTH:
            raise MalformedError("values that lie too deep")
        if kind is Kind.ROWS:
            self._take_room(number)
            return [self._value(self._part(node, 0), depth + 1) for _ in range(number)]
        if kind is Kind.PLACES:
            self._take_room(number)
            places = (min(place, MOST_PLACES) for place in range(number))
            return [self._value(self._part(node, place), depth + 1) for place in places]
        if kind is Kind.PAIRS:
            keys = self._texts.texts(number)
            self._take_room(len(keys))
            parts = ((key, self._part(node, at)) for at, key in enumerate(keys))
            return {key: self._value(part, depth + 1) for key, part in parts}
        return self._record(node, kind, number, depth)

    def _scalar(self, kind: Kind | None, number: int) -> Any:
        if kind is Kind.NONE:
            return None
        if kind is Kind.BOOL:
            return number != 0
        if kind is Kind.TEXT:
            return self._texts.text(number)
        assert kind is not None
        return float_of(kind, number)

    def _record(
        self, node: Node[ColumnReader], kind: Kind | None, number: int, depth: int
    ) -> list[Any]:
        fields: list[Any] = []
        if kind is Kind.TAGGED:
            fields.append(self._texts.text(number))
            if number not in node.tagged:
                node.tagged[number] = self._node()
            node = node.tagged[number]
            number, kind = node.column.next(), node.column.kind
        if kind is not Kind.RECORD:
            raise MalformedError("a kind of record without a record")
        self._take_room(number)
        known = node.parts[:number]
        for part in known:
            # As `_value` does it, for most values of a recording are plain and lie in records.
            column = part.column
            if column.held is not TOLD:
                column.passed += 1
                fields.append(column.held)
                continue
            value = column.next()
            fields.append(
                value if column.is_plain else self._told(part, column.kind, value, depth + 1)
            )
        for position in range(len(known), number):
            fields.append(self._value(self._part(node, position), depth + 1))
        return fields

    def _take_room(self, number: int) -> None:
        """For so many more values."""
        if not 0 <= number <= MOST_VALUES - self._values:
            raise MalformedError("more values than a chunk can hold")
        self._values += number
