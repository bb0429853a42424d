"""A picture of the screen: cells in, SVG out. It opens in a browser and looks like the terminal."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Final

from tui.export.cells import Cells, Ink, Piece
from tui.export.glyphs import Box, shape_of

CELL_X: Final = 8
CELL_Y: Final = 16
"""Pixels of a cell: eighths of it fall on whole pixels, so nothing blurs."""
FONT: Final = 13.33
"""Common fonts are 0.6 as wide as high."""
BASELINE: Final = 12
MARGIN: Final = 12
FAMILIES: Final = (
    "ui-monospace,'DejaVu Sans Mono','Cascadia Mono',Menlo,Consolas,'Liberation Mono',monospace"
)
_WORD: Final = re.compile(r"\S+(?: \S+)*")
"""Words with single blanks between them are written in one go."""


def svg_of(cells: Cells, title: str) -> str:
    """The whole picture. The text of every row stands in it once more, for who cannot see it."""
    width = 2 * MARGIN + cells.columns * CELL_X
    height = 2 * MARGIN + len(cells.rows) * CELL_Y
    inks = {ink: f"i{at}" for at, ink in enumerate(_inks(cells))}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" '
        f'width="{_n(width)}" height="{_n(height)}" role="img" font-family="{FAMILIES}" '
        f'font-size="{FONT}" shape-rendering="crispEdges">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(chr(10).join(cells.lines()))}</desc>",
        f"<style>{''.join(_rule(ink, name) for ink, name in inks.items())}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{cells.background}"/>',
        f'<g transform="translate({_n(MARGIN)} {_n(MARGIN)})">',
    ]
    for y, row in enumerate(cells.rows):
        parts += _row(row, y, cells.background, inks)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _inks(cells: Cells) -> Iterator[Ink]:
    return iter(dict.fromkeys(piece.ink for row in cells.rows for piece in row))


def _rule(ink: Ink, name: str) -> str:
    weight = ";font-weight:bold" if ink.bold else ""
    return f".{name}{{fill:{ink.foreground}{weight}}}"


def _row(row: Iterable[Piece], y: int, background: str, inks: dict[Ink, str]) -> Iterator[str]:
    """Backgrounds first, then shapes and words: no letter is painted over."""
    placed: list[tuple[int, Piece]] = []
    x = 0
    for piece in row:
        placed.append((x, piece))
        x += len(piece.text)
    for x, (text, ink) in placed:
        if ink.background != background:
            yield _rect(Box(x, y, len(text), 1), f'fill="{ink.background}"')
    for x, (text, ink) in placed:
        name = f'class="{inks[ink]}"'
        for start, character, count in _runs(text):
            for box in shape_of(character) or ():
                yield from _shape(box, x + start, y, count, name)
        letters = "".join(" " if shape_of(one) is not None else one for one in text)
        for word in _WORD.finditer(letters):
            yield _text(word.group(), x + word.start(), y, name)


def _runs(text: str) -> Iterator[tuple[int, str, int]]:
    """(first cell, character, how many of it) of the characters that are no blanks."""
    at = 0
    for character, group in groupby(text):
        count = len(list(group))
        if character != " ":
            yield at, character, count
        at += count


def _shape(box: Box, x: int, y: int, count: int, name: str) -> Iterator[str]:
    """One character's rectangle in each of its cells; those that touch are drawn as one."""
    if box.x == 0 and box.width == 1:
        yield _rect(box._replace(x=x, y=y + box.y, width=count), name)
        return
    for at in range(x, x + count):
        yield _rect(box._replace(x=at + box.x, y=y + box.y), name)


def _rect(box: Box, paint: str) -> str:
    faint = f' opacity="{box.opacity:g}"' if box.opacity < 1 else ""
    return (
        f'<rect x="{_n(box.x * CELL_X)}" y="{_n(box.y * CELL_Y)}" '
        f'width="{_n(box.width * CELL_X)}" height="{_n(box.height * CELL_Y)}" {paint}{faint}/>'
    )


def _text(text: str, x: int, y: int, name: str) -> str:
    """`textLength` holds the word to its cells whatever font there is."""
    return (
        f'<text x="{_n(x * CELL_X)}" y="{_n(y * CELL_Y + BASELINE)}" '
        f'textLength="{_n(len(text) * CELL_X)}" lengthAdjust="spacingAndGlyphs" '
        f"{name}>{escape(text)}</text>"
    )


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
