"""A column: the values that one field took, one after the other, in as few bytes as is simple.

A value is a kind and a whole number. Kinds change seldom and are said only then; numbers are told
as the difference to the one before. A column that goes on as before costs nothing, because what
is missing at its end means "the same again".
"""

from typing import Final

from .bits import BitReader, BitWriter
from .format import MalformedError
from .kinds import NAMES, PLAIN, UNIT, Kind, kind_numbered
from .varints import Varints, put_varint

TOLD: Final = object()
"""Stands for no value: those of a column are told one by one."""
_SAME: Final = 0
_CHANGE: Final = 1
_FIRST: Final = 2
"""What stands for a value: the one before again, one of another kind, or from here on itself."""


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
        unit = UNIT.get(kind, 1)
        if kind is not self.kind:
            self._change(kind)
            put_varint(self._bytes, _folded(value // unit))
            self._told = len(self._bytes)
        elif kind in NAMES:
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
        if self.kind is None or self.kind in NAMES:
            self._bytes.append(_CHANGE)
        else:
            self._bits.put(_CHANGE)
        self._bytes.append(kind)
        self.kind = kind


class ColumnReader:
    """Reads what a ColumnWriter wrote, chunk after chunk."""

    def __init__(self) -> None:
        self.kind: Kind | None = None
        """Of the last value."""
        self.is_plain = False
        """The last value is the number itself."""
        self.held: object = TOLD
        """The value that it has throughout a chunk which tells nothing of it; else `TOLD`. Whoever
        takes it so counts in `passed` how often."""
        self.passed = 0
        self._named = True
        self._unit = 1
        self._last = 0
        self._bits = BitReader()
        self._ready = self._bits.ready
        self._bytes = Varints(b"")

    def feed(self, names: Varints, differences: bytes) -> None:
        """What the next chunk has for it."""
        if not self._named:
            self._bits.zeros += self.passed
        self.held, self.passed = TOLD, 0
        self._bytes = names
        self._bits.feed(differences)

    @property
    def last(self) -> int:
        """The last value's number."""
        return self._last

    def next(self) -> int:
        """The next value's number. Raises MalformedError where there can be none."""
        if self._named:
            return self._next_named()
        if self._ready:
            token = self._ready.pop()
        elif self._bits.is_over:
            self._bits.zeros += 1
            return self._last
        else:
            token = self._bits.next()
        if token == _CHANGE:
            self._change()
        elif token != _SAME:
            self._last += _unfolded(token - _FIRST + 1) * self._unit
        return self._last

    def _next_named(self) -> int:
        token = _SAME if self._bytes.is_over else self._bytes.next()
        if token == _CHANGE:
            self._change()
        elif self.kind is None:
            raise MalformedError("a column without a kind")
        elif token != _SAME:
            self._last = token - _FIRST
        return self._last

    def _change(self) -> None:
        self.kind = kind = kind_numbered(self._bytes.next())
        self.is_plain, self._named = kind in PLAIN, kind in NAMES
        self._unit = UNIT.get(kind, 1)
        self._last = _unfolded(self._bytes.next()) * self._unit


def _folded(number: int) -> int:
    """0, -1, 1, -2, 2 -> 0, 1, 2, 3, 4: small numbers of either sign stay small."""
    return 2 * number if number >= 0 else -2 * number - 1


def _unfolded(number: int) -> int:
    return -(number + 1) // 2 if number % 2 else number // 2
