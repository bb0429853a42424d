"""Some entries as bytes: every field of theirs a column.

Entries are walked field by field, down to figures and texts, on both sides in the same order.
That order numbers the columns, so that nothing has to name them. What is read is checked against
the types of the entries at the end; fields that a newer monitor appended are left aside there.
"""

from typing import Final, Generic, NamedTuple, TypeVar

from .columns import ColumnReader, ColumnWriter

MOST_VALUES: Final = 1_000_000
"""In a chunk: four times the longest history that a probe sends."""
MOST_COLUMNS: Final = 20_000
MOST_DEPTH: Final = 16
MOST_PLACES: Final = 64
"""Of a tuple with columns of their own; those from there on share theirs."""

Column = TypeVar("Column", ColumnWriter, ColumnReader)


class Chunk(NamedTuple):
    """Some entries."""

    told: bytes
    """Names, texts, and which columns say something: worth compressing."""
    noise: bytes
    """The differences of all figures, bit by bit: no compressor makes them shorter."""


class TooLargeError(ValueError):
    """Entries that no chunk can hold."""


class Node(Generic[Column]):
    """A column, and by position or by kind of record those of what lies in its values."""

    def __init__(self, number: int, column: Column) -> None:
        self.number = number
        self.column: Column = column
        self.parts: list[Node[Column]] = []
        self.tagged: dict[int, Node[Column]] = {}
