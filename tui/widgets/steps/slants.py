"""Lines between two lanes of time, in dots: eight to a cell."""

from collections.abc import Sequence
from math import floor
from typing import NamedTuple

from tui.widgets.charts.runs import runs_of
from tui.widgets.spans import Row, Span

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Braille: the bits of the left and of the right half of a cell, from the top."""
_BRAILLE = 0x2800
DOTS_X, DOTS_Y = 2, 4


class Slant(NamedTuple):
    """From a place in the upper lane to one in the lower lane, in columns from the left."""

    upper: float
    lower: float
    role: str


def slant_rows(slants: Sequence[Slant], columns: int, rows: int) -> list[Row]:
    """The lines, each from the first of the rows to the last; where they share a cell the later
    one gives it its colour."""
    dots = [[0] * columns for _ in range(rows)]
    roles = [["dim"] * columns for _ in range(rows)]
    height = rows * DOTS_Y
    for upper, lower, role in slants:
        for y in range(height):
            ends = [(upper + (lower - upper) * (y + at) / height) * DOTS_X for at in (0, 1)]
            first = max(0, floor(min(ends)))
            last = min(columns * DOTS_X - 1, max(floor(min(ends)), floor(max(ends) - 1e-9)))
            for x in range(first, last + 1):
                dots[y // DOTS_Y][x // DOTS_X] |= _DOTS[x % DOTS_X][y % DOTS_Y]
                roles[y // DOTS_Y][x // DOTS_X] = role
    return [_row(*one) for one in zip(dots, roles, strict=True)]


def _row(dots: Sequence[int], roles: Sequence[str]) -> Row:
    pairs = zip(dots, roles, strict=True)
    cells = [Span(chr(_BRAILLE + bits) if bits else " ", role) for bits, role in pairs]
    return runs_of(cells)
