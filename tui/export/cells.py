"""The screen as cells: what stands in each, in which colours. What a picture is drawn from."""

from dataclasses import dataclass
from typing import NamedTuple


class Ink(NamedTuple):
    """How a piece of text looks; colours are "#rrggbb"."""

    foreground: str
    background: str
    bold: bool = False


class Piece(NamedTuple):
    """Neighbouring cells of one look. Every character is one cell wide."""

    text: str
    ink: Ink


@dataclass(frozen=True, slots=True)
class Cells:
    """Row by row, from the left."""

    rows: tuple[tuple[Piece, ...], ...]
    background: str
    """Of the screen: where most cells have it, it is painted once."""

    @property
    def columns(self) -> int:
        """Of the widest row."""
        return max((sum(len(piece.text) for piece in row) for row in self.rows), default=0)

    def lines(self) -> list[str]:
        """The text alone, row by row."""
        return ["".join(piece.text for piece in row).rstrip() for row in self.rows]
