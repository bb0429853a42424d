"""A column: the values that one field took, one after the other, in as few bytes as is simple.

A value is a kind and a whole number. Kinds change seldom and are said only then; numbers are told
as the difference to the one before. A column that goes on as before costs nothing, because what
is missing at its end means "the same again".
"""

import struct
from enum import IntEnum
from math import isfinite
from typing import Final

from tui.recording.bits import BitReader, BitWriter
from tui.recording.format import MalformedError

_FLOAT: Final = struct.Struct("<d")
_BITS: Final = struct.Struct("<Q")
_MOST_VARINT_BYTES: Final = 10
_TENTHS_TO: Final = 1e14
"""Above, a tenth is no longer exact."""


class Kind(IntEnum):
    """What a value is."""

    NONE = 0
    BOOL = 1
    INT = 2
    THOUSANDS = 3
    """A whole number of thousands: nanoseconds that were rounded to microseconds."""
    KIB = 4
    """A whole number of 1024s: memory."""
    TENTHS = 5
    """A float that is a whole number of tenths."""
    KIB_FLOAT = 6
    FLOAT = 7
    """Any float, by its bits."""
    TEXT = 8
    """Number of a text that was told before."""
    TEXTS = 9
    """Number of a list of texts that was told before."""
    ROWS = 10
    """Length of a list: a series, whose items share their columns."""
    RECORD = 11
    """Number of fields; each has columns of its own."""
    PAIRS = 12
    """A dictionary: number of the list of its keys; each value has columns of its own."""
    PLACES = 13
    """Length of a tuple: the same few things every time, each with columns of its own."""
    TAGGED = 14
    """Number of the text that says which kind of record follows; each kind has its own columns."""


_UNIT: Final = {Kind.THOUSANDS: 1_000, Kind.KIB: 1_024}
_COARSE: Final = tuple(_UNIT)
_NAMES: Final = frozenset(
    {Kind.NONE, Kind.TEXT, Kind.TEXTS, Kind.PAIRS, Kind.TAGGED, Kind.FLOAT, Kind.BOOL}
)
"""Their numbers are names: one says nothing about the next."""

_SAME: Final = 0
_CHANGE: Final = 1
_FIRST: Final = 2
"""What stands for a value: the one before again, one of another kind, or from here on itself."""


def kind_of_int(value: int, now: Kind | None) -> Kind:
    """The coarsest unit that holds it, and rather the one that the column has already."""
    if now in _COARSE and value % _UNIT[now] == 0:
        return now
    if value == 0:
        return Kind.INT
    if value % 1_000 == 0:
        return Kind.THOUSANDS
    return Kind.INT if value % 1_024 else Kind.KIB


def number_of_float(value: float, now: Kind | None) -> tuple[Kind, int]:
    """The kind and the number from which `float_of` makes the very same float."""
    if isfinite(value) and abs(value) < _TENTHS_TO:
        if value.is_integer() and value % 1_024 == 0 and (value or now is Kind.KIB_FLOAT):
            return Kind.KIB_FLOAT, int(value) // 1_024
        tenths = round(value * 10)
        if tenths / 10 == value:
            return Kind.TENTHS, tenths
    return Kind.FLOAT, _BITS.unpack(_FLOAT.pack(value))[0]


def float_of(kind: Kind, number: int) -> float:
    """The float behind a number. Raises MalformedError where there is none."""
    try:
        if kind is Kind.TENTHS:
            return number / 10
        if kind is Kind.KIB_FLOAT:
            return float(number * 1_024)
        return float(_FLOAT.unpack(_BITS.pack(number))[0])
    except (OverflowError, struct.error):
        raise MalformedError("no such float") from None


def put_varint(to: bytearray, number: int) -> None:
    """Append a whole number from 0: seven bits a byte, the low ones first."""
    while number > 0x7F:
        to.append(number & 0x7F | 0x80)
        number >>= 7
    to.append(number)


class ColumnWriter:
    """Collects a column's values for the next chunk.

    Names and changes of kind go into bytes, where deflate finds them again; differences go into
    bits. A difference of 0 is 0 there, a change of kind 1, and any other difference 2 and more.
    """

    def __init__(self) -> None:
        self.kind: Kind | None = None
        self._last = 0
        self._bits = BitWriter()
        self._bytes = bytearray()
        self._told = 0
        """Bytes up to the last name that was not "the same again"."""

    def put(self, kind: Kind, value: int) -> None:
        """Append a value; `value` is a multiple of the kind's unit."""
        unit = _UNIT.get(kind, 1)
        if kind is not self.kind:
            self._change(kind)
            put_varint(self._bytes, _folded(value // unit))
            self._told = len(self._bytes)
        elif kind in _NAMES:
            if value == self._last:
                self._bytes.append(_SAME)
            else:
                put_varint(self._bytes, _FIRST + value)
                self._told = len(self._bytes)
        else:
            difference = (value - self._last) // unit
            # Folded, a difference other than 0 is 1 at least.
            self._bits.put(_FIRST - 1 + _folded(difference) if difference else _SAME)
        self._last = value

    def take(self) -> tuple[bytes, bytes]:
        """The bytes and the bits since the last time."""
        taken = bytes(self._bytes[: self._told])
        self._bytes.clear()
        self._told = 0
        return taken, self._bits.take()

    def _change(self, kind: Kind) -> None:
        if self.kind is None or self.kind in _NAMES:
            self._bytes.append(_CHANGE)
        else:
            self._bits.put(_CHANGE)
        self._bytes.append(kind)
        self.kind = kind


class ColumnReader:
    """Reads what a ColumnWriter wrote, chunk after chunk."""

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._last = 0
        self._bits = BitReader()
        self._bytes = Varints(b"")

    def feed(self, names: "Varints", differences: bytes) -> None:
        """What the next chunk has for it."""
        self._bytes = names
        self._bits.feed(differences)

    def next(self) -> tuple[Kind, int]:
        """The next value and its kind. Raises MalformedError where there can be none."""
        named = self._kind is None or self._kind in _NAMES
        if named:
            token = _SAME if self._bytes.is_over else self._bytes.next()
        else:
            token = self._bits.next()
        if token == _CHANGE:
            self._kind = _kind(self._bytes.next())
            self._last = _unfolded(self._bytes.next()) * _UNIT.get(self._kind, 1)
        elif self._kind is None:
            raise MalformedError("a column without a kind")
        elif token != _SAME and named:
            self._last = token - _FIRST
        elif token != _SAME:
            self._last += _unfolded(token - _FIRST + 1) * _UNIT.get(self._kind, 1)
        return self._kind, self._last


class Varints:
    """Whole numbers, one after the other, in some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._end = len(data)

    @property
    def is_over(self) -> bool:
        """Nothing is left."""
        return self._at >= self._end

    def next(self) -> int:
        """The next one. Raises MalformedError where the bytes end or the number does not."""
        number = 0
        for place in range(_MOST_VARINT_BYTES):
            if self._at >= self._end:
                break
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return number
        raise MalformedError("a number without an end")

    def bytes(self, length: int) -> bytes:
        """The next so many bytes as they are. Raises MalformedError where there are fewer."""
        if length > self._end - self._at:
            raise MalformedError("a text without an end")
        self._at += length
        return self._data[self._at - length : self._at]


def _kind(number: int) -> Kind:
    try:
        return Kind(number)
    except ValueError:
        raise MalformedError("a kind that there is not") from None


def _folded(number: int) -> int:
    """0, -1, 1, -2, 2 -> 0, 1, 2, 3, 4: small numbers of either sign stay small."""
    return 2 * number if number >= 0 else -2 * number - 1


def _unfolded(number: int) -> int:
    return -(number + 1) // 2 if number % 2 else number // 2
