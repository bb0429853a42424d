"""The shapes of block, box and braille characters inside a cell of 1 by 1.

Fonts draw them with gaps or overlaps; drawn as shapes they meet exactly, as in a good terminal.
"""

from typing import Final, NamedTuple


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
"""From the middle to the left, right, up, down."""
_THIN_X: Final = 1 / 8
_THIN_Y: Final = 1 / 16
"""Strength of a line, in cells: the same in both directions, a cell being twice as high as wide,
and on whole pixels of a cell of 8 by 16, left of its middle and above it."""
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
