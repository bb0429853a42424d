"""The line that says which of the views is shown."""

from collections.abc import Sequence

from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, first_that_fits
from tui.widgets.view import View

NAMES = ("overview", "gpu", "steps", "memory", "stacks", "processes")
"""In the order of their keys, 1 to 6."""
WORDS = {"gpu": "GPU"}


class TabsRow(Panel):
    """One row, never focused."""

    can_focus = False

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Every view with its key, the shown one marked."""
        return [tabs_row(view.tab, width)]


def tabs_row(shown: str, width: int) -> Row:
    """ " 1 overview  2 GPU [3 steps] 4 memory …"; in a narrow window the shown one alone."""
    entries = [_entry(at, name, name == shown) for at, name in enumerate(NAMES, 1)]
    every = tuple(span for entry in entries for span in entry)
    one = entries[NAMES.index(shown)]
    return first_that_fits([every, (*one, Span(" 1-6 views", "dim"))], width)


def _entry(at: int, name: str, is_shown: bool) -> Row:
    word = f"{at} {WORDS.get(name, name)}"
    return (Span(f"[{word}]", "focus"),) if is_shown else (Span(f" {word} ", "dim"),)
