"""The last line: the keys that matter."""

from collections.abc import Sequence
from typing import Final

from tui.keys import footer_keys
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, ends, length
from tui.widgets.view import View
from tui.wording.numbers import span

SLOW: Final = ("memory", "processes")
"""Views whose charts show all that is known until a window is chosen."""
Key = tuple[str, str]
"""A key as people call it, and its word."""


class Footer(Panel):
    """One row, never focused: the keys of the focused panel first."""

    can_focus = False

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The line."""
        return [footer_row(footer_keys(view.panel), view, width)]


def footer_row(keys: Sequence[Key], view: View, width: int) -> Row:
    """Keys at the left, the way out at the right; the middle ones leave first."""
    entries = [_entry(key, _word(word, view)) for key, word in keys if _is_of_use(word, view)]
    last = (*entries[-1], Span(" "))
    for keep in range(len(entries) - 1, -1, -1):
        left = tuple(piece for entry in entries[:keep] for piece in (Span(" "), *entry, Span(" ")))
        if length(left) + length(last) <= width:
            return ends(left, last, width, gap=0)
    return last


def _word(word: str, view: View) -> str:
    if word == "window":
        slow = view.tab in SLOW and not view.window_chosen
        return "window all" if slow else f"window {span(view.window_s)}"
    if word == "pause" and view.behind_s is not None:
        return "go on"
    return word


def _is_of_use(word: str, view: View) -> bool:
    """Going back in time is named where a person looks back, or at a recording."""
    return word != "time" or view.behind_s is not None or view.snapshot.status.replay is not None


def _entry(key: str, word: str) -> Row:
    return (Span(key, "key"), Span(f" {word}", "dim"))
