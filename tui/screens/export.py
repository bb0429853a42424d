"""What a person takes along: the screen as files, the verdict as text."""

from pathlib import Path
from typing import Any, Final

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.app import App

from ..formats.files import Exported, export, file_stem
from ..formats.jsonlines import line
from ..formats.report import report_lines, verdict_lines
from ..formats.speedscope import speedscope_of
from ..formats.svg import Cells, Ink, TextRun, svg_of
from ..model.snapshot import Snapshot
from ..terminal import takes_clipboard
from .textual_private import rendered_rows

# The screen's cells as they stand: what Textual would write to the terminal, with its colours.


def cells_of(app: App[Any]) -> Cells:
    """Every cell of the app's screen. (Textual's own export is an SVG with sheared blocks.)"""
    ground = app.screen.rich_style
    rows = (tuple(_piece(segment, ground) for segment in strip) for strip in rendered_rows(app))
    return Cells(tuple(rows), _hex(ground.bgcolor, foreground=False))


def _piece(segment: Segment, ground: Style) -> TextRun:
    style = ground if segment.style is None else ground + segment.style
    front, back = _hex(style.color, foreground=True), _hex(style.bgcolor, foreground=False)
    if style.reverse:
        front, back = back, front
    return TextRun(_one_a_cell(segment.text), Ink(front, back, bool(style.bold)))


def _hex(color: Color | None, foreground: bool) -> str:
    """The terminal's own colours, which nobody can ask for, as they commonly are."""
    known = color or Color.default()
    return known.get_truecolor(SVG_EXPORT_THEME, foreground).hex


def _one_a_cell(text: str) -> str:
    """A character that takes two cells is followed by a blank for the second."""
    return "".join(character + " " * (cell_len(character) - 1) for character in text)


REPORT_WIDTH: Final = 100
HERE: Final = Path()
"""The current folder."""
BESIDE: Final = 2
"""Cells of a notice that are its margins."""
LEAST_FOLDER: Final = 8
"""Cells from which the end of a folder's path says something."""


def export_screen(app: App[Any], snapshot: Snapshot) -> str:
    """Write report, JSON and picture into the current folder; returns the notice."""
    files = {
        ".txt": _text(report_lines(snapshot, REPORT_WIDTH)),
        ".json": line(snapshot, final=True) + "\n",
        ".svg": svg_of(cells_of(app), f"gpuwatch {snapshot.script} {snapshot.pid}"),
    }
    return _written(files, snapshot, app.size.width - BESIDE)


def copy_verdict(app: App[Any], snapshot: Snapshot) -> str:
    """The verdict to the clipboard, or to a file where the terminal has none; returns the notice.

    Nothing shows whether the clipboard took it.
    """
    text = _text(verdict_lines(snapshot.verdict, REPORT_WIDTH))
    if takes_clipboard():
        app.copy_to_clipboard(text)
        return "verdict copied (if the terminal passes it on; e writes it to a file)"
    why = "no clipboard in this terminal: "
    return why + _written({".txt": text}, snapshot, app.size.width - BESIDE - len(why))


def copy_stacks(app: App[Any], snapshot: Snapshot, text: str) -> str:
    """Collapsed stacks to the clipboard, and to a file beside one for speedscope. Returns a notice.

    Terminals cut long texts, and nothing shows whether one took it.
    """
    if takes_clipboard():
        app.copy_to_clipboard(text)
    words = f"{len(text.splitlines())} stacks copied · "
    room = app.size.width - BESIDE - len(words)
    files = {".stacks.txt": text}
    if snapshot.trees is not None:
        files[".stacks.json"] = speedscope_of(snapshot.trees, snapshot.script)
    return words + _written(files, snapshot, room)


def _text(lines: list[str]) -> str:
    return "\n".join([*lines, ""])


def _written(files: dict[str, str], snapshot: Snapshot, room: int) -> str:
    stem = file_stem(snapshot.script, snapshot.pid, snapshot.t_unix)
    try:
        return exported_words(export(files, stem, HERE), room)
    except OSError as error:
        return f"nothing written: {error}"


def exported_words(exported: Exported, room: int) -> str:
    """ "wrote /runs/gpuwatch-train-4711-20261121-140301 .txt .json .svg": the names whole, the
    folder as far as it fits into so many cells."""
    first, *others = exported.paths
    name = " ".join([first.name if not others else first.stem, *_endings(exported)])
    if exported.why_elsewhere:
        return f"wrote {first.parent}/{name} ({exported.why_elsewhere})"
    folder = f"{first.parent.absolute()}/"
    left = room - len(f"wrote {name}")
    if len(folder) > left:
        folder = f"…{folder[len(folder) - left + 1 :]}" if left >= LEAST_FOLDER else ""
    return f"wrote {folder}{name}"


def _endings(exported: Exported) -> list[str]:
    return [path.suffix for path in exported.paths] if len(exported.paths) > 1 else []
