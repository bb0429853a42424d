"""Entries as columns: one for every field of every kind of record, as differences.

A chunk leaves out what goes on as before, so a figure that stands still costs nothing. Columns are
lists of plain numbers; msgpack and zlib make them small.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from math import gcd
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, get_args

import msgspec
from msgspec.structs import FieldInfo, astuple

from .format import MalformedError

MOST_VALUES: Final = 500_000
"""Of one kind of record in a chunk: more than the longest history that a probe sends."""
BIT_SETS: Final = frozenset({"moments", "seen"})
"""Fields whose numbers are sets of bits: a difference to the one before says nothing."""

_Item = TypeVar("_Item")
Values = Annotated[list[_Item], msgspec.Meta(max_length=MOST_VALUES + 1)]
"""The length is checked before anything is decoded."""
Columns = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=100)]
AS_BEFORE: Final = msgspec.Raw(msgspec.msgpack.encode(None))


class Column:
    """The values of one field, in one direction: here as they are."""

    def __init__(self, hint: Any, default: Any) -> None:
        self._last = default
        self._decode = _decoder(hint)

    def pack(self, values: Sequence[Any]) -> Any:
        """What a chunk says of the field; None where it goes on as before."""
        if values.count(self._last) == len(values):
            return None
        self._last = values[-1]
        return self._packed(values)

    def unpack(self, packed: msgspec.Raw, count: int) -> Sequence[Any]:
        """So many values, at least 1. Raises ValueError for what no `pack` returned."""
        given = self._decode(packed)
        size = len(self._last) if isinstance(self._last, tuple | list | dict) else 1
        if given is None and count * size <= MOST_VALUES:
            return [self._last] * count
        values = self._unpacked(given or [])
        if len(values) != count:
            raise MalformedError("a column of another length")
        self._last = values[-1]
        return values

    def _packed(self, values: Sequence[Any]) -> Sequence[Any]:
        return values

    def _unpacked(self, packed: list[Any]) -> Sequence[Any]:
        return packed


class Floats(Column):
    """Numbers of tenths, and floats that are none."""

    def _packed(self, values: Sequence[float | None]) -> Sequence[int | float | None]:
        return [one if one is None else _tenths(one) for one in values]

    def _unpacked(self, packed: list[int | float | None]) -> Sequence[float | None]:
        return [one / 10 if isinstance(one, int) else one for one in packed]


def _tenths(value: float) -> int | float:
    tenths = round(value * 10) if abs(value) < 1e15 else 0
    return tenths if tenths / 10 == value else value


class Whole(Column):
    """Whole numbers and truth values: a unit, and in it how much each is more than the last."""

    def __init__(self, kind: type, default: Any) -> None:
        super().__init__(int | None, default)
        self._kind = kind
        self._base = 0
        """The last number that was not None."""

    def _packed(self, values: Sequence[int | None]) -> list[int | None]:
        differences: list[int | None] = []
        for value in values:
            differences.append(None if value is None else value - self._base)
            self._base = self._base if value is None else value
        unit = gcd(*filter(None, differences)) or 1
        return [unit, *(one and one // unit for one in differences)]

    def _unpacked(self, packed: list[Any]) -> Sequence[Any]:
        unit, values, base = packed[:1], packed[1:], self._base
        if unit == [None]:
            raise MalformedError("a unit that is none")
        for at, one in enumerate(values):
            if one is not None:
                base += one * unit[0]
                values[at] = self._kind(base)
        self._base = base
        return values


class Rows:
    """One record, none or several in each value: how many, and a table of all of them."""

    def __init__(self, kind: type[msgspec.Struct], listed: bool, usually: int) -> None:
        self._listed = listed
        self._lengths = Whole(int, usually)
        self._table = Table(kind)

    def pack(self, values: Sequence[Any]) -> Any:
        """The lengths, then the columns of all records."""
        if not self._listed:
            values = [() if value is None else (value,) for value in values]
        lengths = self._lengths.pack([len(value) for value in values])
        packed = [lengths, *self._table.pack([row for value in values for row in value])]
        return None if packed == [None] else packed

    def unpack(self, packed: msgspec.Raw, count: int) -> Sequence[Any]:
        """The records of each value."""
        own, *columns = _decode_columns(packed) or [AS_BEFORE]
        lengths = self._lengths.unpack(own, count)
        if not all(one is not None and one >= 0 for one in lengths):
            raise MalformedError("a length that is none")
        rows = self._table.unpack(columns, sum(lengths))
        if self._listed:
            return [list(islice(rows, length)) for length in lengths]
        return [next(rows) if length else None for length in lengths]


class Table:
    """The columns of one kind of record, at one place in the entries."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._kind = kind
        tag = kind.__struct_config__.tag
        self._tag = () if tag is None else (tag,)
        self._columns = [_column(field) for field in _fields(kind)]

    def pack(self, rows: Sequence[msgspec.Struct]) -> list[Any]:
        """What each column says, without those at the end that go on as before."""
        if len(rows) * len(self._columns) > MOST_VALUES:
            raise OverflowError(f"{len(rows)} rows at once")
        values = zip(*map(astuple, rows), strict=True)
        packed = [column.pack(own) for column, own in zip(self._columns, values, strict=False)]
        while packed and packed[-1] is None:
            packed.pop()
        return packed

    def unpack(self, packed: Sequence[msgspec.Raw], count: int) -> Iterator[Any]:
        """So many records, as `msgspec.convert` takes them.

        Columns that a newer writer has appended are left out; those that it lacks have defaults.
        """
        if count * len(self._columns) > MOST_VALUES:
            raise MalformedError("more values than a chunk can hold")
        given = [*packed, *[AS_BEFORE] * len(self._columns)] if count else []
        pairs = zip(self._columns, given, strict=False)
        rows = zip(*(column.unpack(own, count) for column, own in pairs), strict=True)
        if self._kind.__struct_config__.array_like:
            return ((*self._tag, *row) for row in rows)
        return (dict(zip(self._kind.__struct_fields__, row, strict=True)) for row in rows)


# What depends on the types alone is worked out once: every recording that is opened asks for it.
_fields = cache(msgspec.structs.fields)


@cache
def _decoder(hint: Any) -> Callable[[msgspec.Raw], Any]:
    """Of the values of such a column."""
    return msgspec.msgpack.Decoder(Values[hint] | None).decode


_decode_columns = msgspec.msgpack.Decoder(Columns | None).decode


def _column(field: FieldInfo) -> Column | Rows:
    """The column that fits the field's type."""
    made = field.default_factory is not msgspec.NODEFAULT
    default = None if field.required else field.default_factory() if made else field.default
    hints = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
    (hint,) = (hint for hint in hints if hint is not NoneType)
    item = next(iter(get_args(hint)), hint)
    if isinstance(item, type) and issubclass(item, msgspec.Struct):
        return Rows(item, item is not hint, usually=int(item is hint and len(hints) == 1))
    if hint is float:
        return Floats(int | float | None, default)
    if hint in (int, bool) and field.name not in BIT_SETS:
        return Whole(hint, default)
    return Column(field.type, default)
