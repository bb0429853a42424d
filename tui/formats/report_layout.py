"""Rows of the report: a label on the left, words on the right, wrapped between words."""

import re
import textwrap
from collections.abc import Iterable
from typing import Final

LABEL: Final = 9
"""Columns of the labels on the left."""
_UNIT: Final = re.compile(r"(?<=\d) (?=(?:ms|s|min|h|MiB|GiB|MB/s|GB/s|W|MHz|°C)\b)")
_GLUE: Final = "\N{NO-BREAK SPACE}"


def labelled(label: str, rows: Iterable[str], width: int) -> list[str]:
    """Rows beside one label."""
    lines: list[str] = []
    for row in rows:
        lines += wrapped(label.ljust(LABEL), row, width)
        label = ""
    return lines


def wrapped(indent: str, text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, but for words that are longer. A number stays
    with its unit."""
    lines = textwrap.wrap(
        _UNIT.sub(_GLUE, text),
        width,
        initial_indent=indent,
        subsequent_indent=" " * max(2, len(indent)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]


def head(parts: Iterable[str], width: int) -> list[str]:
    """What a report is about, and an empty line."""
    return [*wrapped("", joined(parts), width), ""]


def joined(parts: Iterable[str]) -> str:
    """The parts in one row; empty ones are left out."""
    return " · ".join(part for part in parts if part)
