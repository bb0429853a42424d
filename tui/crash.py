"""A mistake of ours that ended the screen: a report in a file, and three lines for the person."""

import os
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tui.errors import GpuwatchError
from tui.export.files import export

TOLD: Final = ("TERM", "COLORTERM", "TERM_PROGRAM", "LANG", "LC_ALL", "TMUX", "STY", "NO_COLOR")
"""Of the environment, what the screen depends on. Nothing else of it is written down."""


class ScreenBrokeError(GpuwatchError):
    """The exit code is ours to fix: 1."""


def screen_broke(
    error: Exception, size: tuple[int, int], versions: Iterable[str], stem: str, folder: Path
) -> ScreenBrokeError:
    """What to raise once the terminal is given back; writes the report into the folder."""
    said = " ".join(str(error).split())
    what = f"the screen broke: {type(error).__name__}{': ' if said else ''}{said}"
    why = "This is a mistake in gpuwatch; the training goes on, and --plain works without a screen."
    try:
        path = export({".txt": _report(error, size, versions)}, stem, folder).paths[0]
    except OSError as failed:
        return ScreenBrokeError(what, why, f"Please report it (no file could be written: {failed})")
    return ScreenBrokeError(what, why, f"Please report it with this file: {path}")


def _report(error: Exception, size: tuple[int, int], versions: Iterable[str]) -> str:
    terminal = [f"{name}={os.environ[name]}" for name in TOLD if name in os.environ]
    lines = [*versions, f"terminal {size[0]}x{size[1]}", *terminal, ""]
    return "\n".join(lines) + "\n" + "".join(traceback.format_exception(error))
