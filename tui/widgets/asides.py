"""A sentence without room for all of it: rather whole without its parentheses than cut."""

import re
from typing import Final

from tui.widgets.spans import wrap

_WORD: Final = re.compile(r"[^\W\d_]{2}")
_PAUSE: Final = re.compile(r"$|[,.;:](\s|$)| —")


def is_cut(text: str, width: int, lines: int) -> bool:
    """Whether it takes more than so many lines."""
    return len(wrap(text, width, lines + 1)) > lines


def within(text: str, width: int, lines: int = 1) -> list[str]:
    """The text over at most `lines` lines: whole, or else without its asides, or else clipped."""
    shown = without_asides(text) if is_cut(text, width, lines) else text
    return wrap(shown, width, lines)


def without_asides(text: str) -> str:
    """Without what stands in parentheses where a sentence pauses or ends, if it is in words.
    Numbers and single letters belong to what is said; what follows a name at once is a call."""
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
