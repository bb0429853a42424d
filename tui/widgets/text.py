"""Rows of text with roles: what panels are made of before there is any colour.

A role ("critical", "dim", "data") is a meaning; styles/ says what it looks like.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from rich.cells import cell_len as cell_len
from rich.cells import set_cell_size


class Span(NamedTuple):
    """A piece of text with one meaning."""

    text: str
    role: str = "text"


Row = tuple[Span, ...]

EMPTY: Row = ()
HELD_ROWS = 256
"""Most rows of a screen are those of the frame before."""
NEAR = 12
"""A cut goes back to the end of a word over at most this many cells."""


def row(text: str, role: str = "text") -> Row:
    """A row of one piece."""
    return (Span(text, role),)


def text_of(spans: Row) -> str:
    """The row's text alone."""
    return "".join(span.text for span in spans)


def length(spans: Row) -> int:
    """Cells that the row takes."""
    return sum(cell_len(span.text) for span in spans)


def clip(text: str, width: int) -> str:
    """The text in at most `width` cells; a cut shows as "…", after a whole word if near."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    head = set_cell_size(text, width - 1)
    while cell_len(head) > width - 1:
        head = head[:-1]  # signs without a width, as joiners, mislead it before wide ones
    blank = head.rfind(" ")
    if text[len(head)] != " " and blank >= len(head) - NEAR and blank > len(head) // 2:
        head = head[:blank]
    return head.rstrip(" ,;:(·") + "…"


def wrap(text: str, width: int, lines: int) -> list[str]:
    """The text over at most `lines` lines, broken between words; the last one is clipped."""
    out: list[str] = []
    rest = text.strip()
    while rest and len(out) < lines - 1 and cell_len(rest) > width:
        head = set_cell_size(rest, width + 1)
        blank = head.rfind(" ")
        cut = blank if blank > width // 3 else width
        out.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*out, clip(rest, width)] if rest else out


@lru_cache(maxsize=HELD_ROWS)
def fit(spans: Row, width: int) -> Row:
    """The row in exactly `width` cells: the end clipped or filled with blanks."""
    out: list[Span] = []
    left = width
    for text, role in spans:
        if left <= 0:
            break
        cells = cell_len(text)
        if cells > left:
            text, cells = clip(text, left), left
            text = set_cell_size(text, left)
        out.append(Span(text, role))
        left -= cells
    if left > 0:
        out.append(Span(" " * left))
    return tuple(out)


def ends(left: Row, right: Row, width: int, gap: int = 2) -> Row:
    """`left` at the start of the row and `right` at its end, or `left` alone if both do not fit."""
    space = width - length(left) - length(right)
    if not right or space < gap:
        return left
    return (*left, Span(" " * space), *right)


def first_that_fits(candidates: Sequence[Row], width: int) -> Row:
    """The first of the candidates, fullest first, that fits; else the last."""
    for candidate in candidates:
        if length(candidate) <= width:
            return candidate
    return candidates[-1]


def joined(parts: Iterable[str], width: int, separator: str = " · ") -> str:
    """The parts in one line: without those that are too long alone, and without the last ones
    where they do not all fit."""
    kept = [part for part in parts if part and cell_len(part) <= width]
    while kept and cell_len(separator.join(kept)) > width:
        kept.pop()
    return separator.join(kept)


def rule(title: str, notes: Iterable[str], width: int, focused: bool = False) -> Row:
    """A panel's heading: "── Title ───────────── note · note ──"."""
    title = clip(title, max(1, width - 6))
    role = "focus" if focused else "title"
    mark = "▸ " if focused else ""
    room = width - cell_len(title) - len(mark) - 4
    note = joined(notes, room - 6)
    tail = f" {note} ──" if note else ""
    line = "─" * max(0, room - cell_len(tail))
    spans = [Span("── ", "rule"), Span(mark + title, role), Span(f" {line}", "rule")]
    if note:
        spans += [Span(f" {note} ", "dim"), Span("──", "rule")]
    return tuple(spans)


# Which characters the terminal can show.

EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
"""Levels of the lower part of a cell."""
SHADE: Final = "░"

_BRAILLE: Final = range(0x2801, 0x2900)
_CONSOLE: Final[dict[int, int | str | None]] = {
    **str.maketrans("▁▂▃▅▆▇▏▎▍▌▋▊▉", "  ▄▄▄█  ▌▌▌██"),
    **dict.fromkeys(_BRAILLE, "·"),
}
"""The Linux console's font (CP437) has half blocks and shades only."""

_ASCII: Final[dict[int, int | str | None]] = {
    **str.maketrans(
        "▁▂▃▄▅▆▇█░▒▓═▏▎▍▌▋▊▉─│┴└┤┌├·…←→↵≤≥×±–−▲▼◆●○■▸╱╲╳┄✓µ↑↓≈",
        "..:::###:+=~  #####-|++|+|-.<>><>x+--!v**o#>/\\x-vu^v%",
    ),
    **dict.fromkeys(_BRAILLE, "."),
}


class Charset(Enum):
    """A repertoire of characters."""

    UNICODE = "unicode"
    CONSOLE = "console"
    ASCII = "ascii"

    def translate(self, text: str) -> str:
        """The text as this terminal can show it: printable, and as many characters as before."""
        if not text.isprintable():
            text = "".join(c if c.isprintable() else "?" for c in text)
        if self is Charset.UNICODE or text.isascii():
            return text
        if self is Charset.CONSOLE:
            return text.translate(_CONSOLE)
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


# Which of many lines are seen.


def first_seen(chosen: int, first: int, count: int, room: int) -> int:
    """The first of the lines that are seen, moved no further than needed for the chosen one to be
    among them, and so that no room is left empty."""
    if chosen < first:
        first = chosen
    if chosen >= first + room:
        first = chosen - room + 1
    return max(0, min(first, count - room))


# A sentence without room for all of it: rather whole without its parentheses than cut.

_WORD: Final = re.compile(r"[^\W\d_]{2}")
_PAUSE: Final = re.compile(r"$|[,.;:](\s|$)| —")


def is_cut(text: str, width: int, lines: int) -> bool:
    """Whether it takes more than so many lines."""
    return len(wrap(text, width, lines + 1)) > lines


def within(text: str, width: int, lines: int = 1) -> list[str]:
    """The text over at most `lines` lines: whole, or else without its asides, or else clipped."""
    shown = elided(text) if is_cut(text, width, lines) else text
    return wrap(shown, width, lines)


def elided(text: str) -> str:
    """Without what stands in parentheses where a sentence pauses or ends, if it is in words.
    Numbers and single letters belong to the text; what follows a name at once is a call."""
    kept, at = "", 0
    while (opens := text.find(" (", at)) >= 0:
        end = _after(text, opens + 1)
        kept += text[at:opens]
        if not (_WORD.search(text, opens, end) and _PAUSE.match(text, end)):
            kept += text[opens:end]
        at = end
    return kept + text[at:]


def _after(text: str, opens: int) -> int:
    """Where the parenthesis is closed that opens there; the text's end if it never is."""
    depth = 0
    for at in range(opens, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at + 1
    return len(text)
