"""Source lines around a place in the code, for whoever shows them."""

from collections.abc import Callable
from dataclasses import dataclass

from tui.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines of one file, or why there are none."""

    path: str
    first: int
    """Number of the first of the lines, from 1."""
    lines: tuple[str, ...]
    line: int
    """The one that is spoken of."""
    why_not: str = ""


SourceReader = Callable[[str, Snapshot], SourceText]
"""Takes a frame, "function (file:line)", and the picture that it is from."""


def nobody_reads(frame: str, snapshot: Snapshot) -> SourceText:
    """For a screen that was given no reader."""
    return SourceText("", 1, (), 0, "nothing here reads source files")
