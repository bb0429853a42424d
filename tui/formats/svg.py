"""A picture of the screen: cells in, SVG out. It opens in a browser and looks like the terminal."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Final, NamedTuple

# The screen as cells of text and colour.


class Ink(NamedTuple):
    """How a piece of text looks; colours are "#rrggbb"."""

    foreground: str
    background: str
    bold: bool = False


class TextRun(NamedTuple):
    """Neighbouring cells with the same ink. Every character is one cell wide."""

    text: str
    ink: Ink


@dataclass(frozen=True, slots=True)
class Cells:
    """Row by row, from the left."""

    rows: tuple[tuple[TextRun, ...], ...]
    background: str
    """Of the screen, painted once for all cells that have it."""

    @property
    def columns(self) -> int:
        """Of the widest row."""
        return max((sum(len(piece.text) for piece in row) for row in self.rows), default=0)

    def lines(self) -> list[str]:
        """The text alone, row by row."""
        return ["".join(piece.text for piece in row).rstrip() for row in self.rows]


# The shapes of block, box and braille characters inside a cell of 1 by 1.


class Box(NamedTuple):
    """A filled rectangle, parts of a cell from its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    opacity: float = 1.0


_LOWER: Final = "▁▂▃▄▅▆▇█"
_LEFT: Final = "▏▎▍▌▋▊▉"
_SHADES: Final = {"░": 0.25, "▒": 0.5, "▓": 0.75}
_QUARTERS: Final = {
    "▀": "ab",
    "▐": "bd",
    "▖": "c",
    "▗": "d",
    "▘": "a",
    "▙": "acd",
    "▚": "ad",
    "▛": "abc",
    "▜": "abd",
    "▝": "b",
    "▞": "bc",
    "▟": "bcd",
}
"""Which quarters are filled: a and b above, c and d below."""
_ARMS: Final = {
    "─": "lr",
    "│": "ud",
    "┌": "rd",
    "┐": "ld",
    "└": "ru",
    "┘": "lu",
    "├": "udr",
    "┤": "udl",
    "┬": "lrd",
    "┴": "lru",
    "┼": "lrud",
    "╭": "rd",
    "╮": "ld",
    "╰": "ru",
    "╯": "lu",
}
"""Which arms go from the middle: left, right, up, down."""
_THIN_X: Final = 1 / 8
_THIN_Y: Final = 1 / 16
"""Thickness of a line in parts of a cell: one pixel of a cell of 8 by 16 in both directions."""
_DOT_X: Final = 0.26
_DOT_Y: Final = 0.13
_BRAILLE: Final = 0x2800
_DOTS: Final = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
"""Column and row of each of braille's eight bits."""


def shape_of(character: str) -> tuple[Box, ...] | None:
    """The rectangles that a character is made of; None for one that is text."""
    if character in _LOWER:
        part = (1 + _LOWER.index(character)) / 8
        return (Box(0, 1 - part, 1, part),)
    if character in _LEFT:
        return (Box(0, 0, (1 + _LEFT.index(character)) / 8, 1),)
    if character in _SHADES:
        return (Box(0, 0, 1, 1, _SHADES[character]),)
    if character in _QUARTERS:
        return tuple(_quarter(name) for name in _QUARTERS[character])
    if character in _ARMS:
        return tuple(_arm(name) for name in _ARMS[character])
    if _BRAILLE <= ord(character) < _BRAILLE + 256:
        bits = ord(character) - _BRAILLE
        return tuple(_dot(*place) for bit, place in enumerate(_DOTS) if bits >> bit & 1)
    return None


def _quarter(name: str) -> Box:
    return Box(0.5 if name in "bd" else 0, 0.5 if name in "cd" else 0, 0.5, 0.5)


def _arm(name: str) -> Box:
    x, y = 0.5 - _THIN_X, 0.5 - _THIN_Y
    return {
        "l": Box(0, y, x + _THIN_X, _THIN_Y),
        "r": Box(x, y, 1 - x, _THIN_Y),
        "u": Box(x, 0, _THIN_X, y + _THIN_Y),
        "d": Box(x, y, _THIN_X, 1 - y),
    }[name]


def _dot(column: int, row: int) -> Box:
    return Box((column + 0.5) / 2 - _DOT_X / 2, (row + 0.5) / 4 - _DOT_Y / 2, _DOT_X, _DOT_Y)


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
"""Words with single blanks between them are one text element."""


def svg_of(cells: Cells, title: str) -> str:
    """The whole picture. It also holds the rows as plain text, for screen readers."""
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


def _row(row: Iterable[TextRun], y: int, background: str, inks: dict[Ink, str]) -> Iterator[str]:
    """Backgrounds first, then shapes and words: no letter is painted over."""
    placed: list[tuple[int, TextRun]] = []
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
    """(first cell, character, repetitions), without blanks."""
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
    """`textLength` fits the word to its cells in any font."""
    return (
        f'<text x="{_n(x * CELL_X)}" y="{_n(y * CELL_Y + BASELINE)}" '
        f'textLength="{_n(len(text) * CELL_X)}" lengthAdjust="spacingAndGlyphs" '
        f"{name}>{escape(text)}</text>"
    )


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
