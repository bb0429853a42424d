"""The last line: the keys that matter."""

from collections.abc import Sequence
from typing import Final

from textual.binding import Binding, BindingType

from ..wording.numbers import span
from .keys import actions_of, footer_keys
from .panel import Panel, View
from .text import Row, Span, ends, first_that_fits, length

# The table of keys as Textual wants it.


def bindings(panel: str = "") -> list[BindingType]:
    """The keys of one kind of panel, or of "" those that work everywhere. Ctrl-C has priority:
    Textual keeps it for copying."""
    return [
        Binding(key, action.handler, action.description, show=False, priority=key == "ctrl+c")
        for action in actions_of(panel)
        for key in action.keys
    ]


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
    of_use = [(key, word) for key, word in keys if _is_of_use(word, view)]
    entries = [_entry(_key(key, word, view), _word(word, view)) for key, word in of_use]
    last = (*entries[-1], Span(" "))
    for keep in range(len(entries) - 1, -1, -1):
        left = tuple(piece for entry in entries[:keep] for piece in (Span(" "), *entry, Span(" ")))
        if length(left) + length(last) <= width:
            return ends(left, last, width, gap=0)
    return last


def _key(key: str, word: str, view: View) -> str:
    """The last view is of ranks, and named where there are some."""
    return key.replace("6", "7") if word == "views" and view.snapshot.ranks else key


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


# The line that says which of the views is shown.

NAMES = ("overview", "gpu", "steps", "memory", "stacks", "processes", "ranks")
"""In the order of their keys, 1 to 7."""
OF_JOBS = ("ranks",)
"""Named where there are several ranks."""
WORDS = {"gpu": "GPU"}


class TabsRow(Panel):
    """One row, never focused."""

    can_focus = False

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Every view with its key, the shown one marked."""
        return [tabs_row(view.tab, width, bool(view.snapshot.ranks))]


def tabs_row(shown: str, width: int, with_ranks: bool) -> Row:
    """ " 1 overview  2 GPU [3 steps] 4 memory …"; in a narrow window the shown one alone."""
    entries = {
        name: _tab_entry(at, name, name == shown)
        for at, name in enumerate(NAMES, 1)
        if name not in OF_JOBS or with_ranks or name == shown
    }
    every = tuple(span for entry in entries.values() for span in entry)
    views = f" 1-{len(entries)} views"
    return first_that_fits([every, (*entries[shown], Span(views, "dim"))], width)


def _tab_entry(at: int, name: str, is_shown: bool) -> Row:
    word = f"{at} {WORDS.get(name, name)}"
    return (Span(f"[{word}]", "focus"),) if is_shown else (Span(f" {word} ", "dim"),)
