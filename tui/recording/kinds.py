"""What a value in a column can be, and which whole number stands for it."""

import struct
from enum import IntEnum
from math import isfinite
from typing import Final

from .format import MalformedError

_FLOAT: Final = struct.Struct("<d")
_BITS: Final = struct.Struct("<Q")
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


UNIT: Final = {Kind.THOUSANDS: 1_000, Kind.KIB: 1_024}
PLAIN: Final = frozenset({Kind.INT, Kind.THOUSANDS, Kind.KIB})
"""Their numbers are the values."""
NAMES: Final = frozenset(
    {Kind.NONE, Kind.TEXT, Kind.TEXTS, Kind.PAIRS, Kind.TAGGED, Kind.FLOAT, Kind.BOOL}
)
"""Their numbers are names: one says nothing about the next."""


def kind_of_int(value: int, now: Kind | None) -> Kind:
    """The coarsest unit that holds it, and rather the one that the column has already."""
    if now in UNIT and value % UNIT[now] == 0:
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


def kind_numbered(number: int) -> Kind:
    """The kind of this number. Raises MalformedError where there is none."""
    try:
        return Kind(number)
    except ValueError:
        raise MalformedError("a kind that there is not") from None
