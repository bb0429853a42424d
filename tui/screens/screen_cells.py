"""The screen's cells as they stand: what Textual would write to the terminal, with its colours."""

from typing import Any

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.app import App

from tui.export.cells import Cells, Ink, Piece


def cells_of(app: App[Any]) -> Cells:
    """Every cell of the app's screen. (Textual's own export is an SVG with sheared blocks.)"""
    ground = app.screen.rich_style
    strips = app.screen._compositor.render_strips(app.size)
    rows = (tuple(_piece(segment, ground) for segment in strip) for strip in strips)
    return Cells(tuple(rows), _hex(ground.bgcolor, foreground=False))


def _piece(segment: Segment, ground: Style) -> Piece:
    style = ground if segment.style is None else ground + segment.style
    front, back = _hex(style.color, foreground=True), _hex(style.bgcolor, foreground=False)
    if style.reverse:
        front, back = back, front
    return Piece(_one_a_cell(segment.text), Ink(front, back, bool(style.bold)))


def _hex(color: Color | None, foreground: bool) -> str:
    """The terminal's own colours, which nobody can ask for, as they commonly are."""
    told = color or Color.default()
    return told.get_truecolor(SVG_EXPORT_THEME, foreground).hex


def _one_a_cell(text: str) -> str:
    """A character that takes two cells is followed by a blank for the second."""
    return "".join(character + " " * (cell_len(character) - 1) for character in text)
