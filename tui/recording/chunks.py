"""Some entries as bytes: every field of theirs a column.

Entries are walked field by field, down to figures and texts, on both sides in the same order.
That order numbers the columns, so that nothing has to name them. What is read is checked against
the types of the entries at the end; fields that a newer monitor appended are left aside there.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from tui.recording.columns import (
    ColumnReader,
    ColumnWriter,
    Kind,
    Varints,
    float_of,
    kind_of_int,
    number_of_float,
    put_varint,
)
from tui.recording.differences import Differences
from tui.recording.format import LATEST_NS, Entry, MalformedError
from tui.recording.texts import TextReader, TextWriter

MOST_VALUES: Final = 1_000_000
"""In a chunk: four times the longest history that a probe sends."""
MOST_COLUMNS: Final = 20_000
MOST_DEPTH: Final = 16
MOST_PLACES: Final = 64
"""Of a tuple with columns of their own; those from there on share theirs."""

_FLOATS: Final = frozenset({Kind.TENTHS, Kind.KIB_FLOAT, Kind.FLOAT})
_INTS: Final = frozenset({Kind.INT, Kind.THOUSANDS, Kind.KIB})

Column = TypeVar("Column", ColumnWriter, ColumnReader)


class Chunk(NamedTuple):
    """Some entries."""

    told: bytes
    """Names, texts, and which columns say something: worth compressing."""
    noise: bytes
    """The differences of all figures, bit by bit: no compressor makes them shorter."""


class TooLargeError(ValueError):
    """Entries that no chunk can hold."""


class _Node(Generic[Column]):
    """A column, and by position or by kind of record those of what lies in its values."""

    def __init__(self, number: int, column: Column) -> None:
        self.number = number
        self.column: Column = column
        self.parts: list[_Node[Column]] = []
        self.tagged: dict[int, _Node[Column]] = {}


class ChunkWriter:
    """Entries in, bytes out. What it said before is not said again."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._fresh = True
        self._differences = Differences(packing=True)
        self._texts = TextWriter()
        self._nodes: list[_Node[ColumnWriter]] = []
        self._root = self._node()
        self._values = 0

    def chunk(self, entries: Sequence[Entry]) -> "Chunk":
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

    def _node(self) -> _Node[ColumnWriter]:
        node: _Node[ColumnWriter] = _Node(len(self._nodes), ColumnWriter())
        self._nodes.append(node)
        return node

    def _part(self, node: _Node[ColumnWriter], position: int) -> _Node[ColumnWriter]:
        if position == len(node.parts):
            node.parts.append(self._node())
        return node.parts[position]

    def _put(self, node: _Node[ColumnWriter], value: Any) -> None:
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

    def _put_struct(self, node: _Node[ColumnWriter], value: msgspec.Struct) -> None:
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

    def _put_pairs(self, node: _Node[ColumnWriter], value: dict[str, Any]) -> None:
        node.column.put(Kind.PAIRS, self._texts.number(tuple(value)))
        for position, item in enumerate(value.values()):
            self._put(self._part(node, position), item)


class ChunkReader:
    """Bytes in, entries out, in the order in which they were written."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._differences = Differences(packing=False)
        self._texts = TextReader()
        self._nodes: list[_Node[ColumnReader]] = []
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
        if not 0 <= whole.t_ns < LATEST_NS:
            raise MalformedError("a time that there is not")
        return whole

    def _walked(self, chunk: Chunk) -> Iterable[Any]:
        data, noise = Varints(chunk.told), Varints(chunk.noise)
        if data.next():
            self._begin()
        count = data.next()
        self._texts.read(data)
        self._fed = {}
        number = -1
        while not data.is_over:
            number += data.next()
            names_bytes, differences_bytes = data.next(), data.next()
            names = Varints(data.bytes(names_bytes))
            self._fed[number] = names, noise.bytes(differences_bytes)
        for node in self._nodes:
            self._feed(node)
        self._values = 0
        for _ in range(count):
            yield self._value(self._root, 0)

    def _node(self) -> _Node[ColumnReader]:
        number = len(self._nodes)
        if number >= MOST_COLUMNS:
            raise MalformedError("too many columns")
        node: _Node[ColumnReader] = _Node(number, ColumnReader())
        self._feed(node)
        self._nodes.append(node)
        return node

    def _feed(self, node: _Node[ColumnReader]) -> None:
        names, differences = self._fed.get(node.number, (Varints(b""), b""))
        node.column.feed(names, differences)

    def _part(self, node: _Node[ColumnReader], position: int) -> _Node[ColumnReader]:
        if position == len(node.parts):
            node.parts.append(self._node())
        return node.parts[position]

    def _value(self, node: _Node[ColumnReader], depth: int) -> Any:
        self._values += 1
        if self._values > MOST_VALUES or depth > MOST_DEPTH:
            raise MalformedError("more values than a chunk can hold")
        kind, number = node.column.next()
        if kind in _INTS:
            return number
        if kind in _FLOATS:
            return float_of(kind, number)
        if kind is Kind.NONE:
            return None
        if kind is Kind.BOOL:
            return number != 0
        if kind is Kind.TEXT:
            return self._texts.text(number)
        if kind is Kind.TEXTS:
            return self._texts.texts(number)
        if kind is Kind.ROWS:
            self._check_room(number)
            return [self._value(self._part(node, 0), depth + 1) for _ in range(number)]
        if kind is Kind.PLACES:
            self._check_room(number)
            places = (min(place, MOST_PLACES) for place in range(number))
            return [self._value(self._part(node, place), depth + 1) for place in places]
        if kind is Kind.PAIRS:
            keys = enumerate(self._texts.texts(number))
            return {key: self._value(self._part(node, at), depth + 1) for at, key in keys}
        return self._record(node, kind, number, depth)

    def _record(self, node: _Node[ColumnReader], kind: Kind, number: int, depth: int) -> list[Any]:
        fields: list[Any] = []
        if kind is Kind.TAGGED:
            fields.append(self._texts.text(number))
            if number not in node.tagged:
                node.tagged[number] = self._node()
            node = node.tagged[number]
            kind, number = node.column.next()
        if kind is not Kind.RECORD:
            raise MalformedError("a kind of record without a record")
        self._check_room(number)
        for position in range(number):
            fields.append(self._value(self._part(node, position), depth + 1))
        return fields

    def _check_room(self, number: int) -> None:
        if not 0 <= number <= MOST_VALUES - self._values:
            raise MalformedError("more values than a chunk can hold")
