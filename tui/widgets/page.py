"""Text that may be longer than the screen: help and doctor. Moved with its own keys."""

from collections.abc import Callable, Sequence

from tui.keys import actions_of, footer_of
from tui.widgets.bindings import bindings
from tui.widgets.panel import Panel
from tui.widgets.spans import EMPTY, Row, Span, ends, rule
from tui.widgets.view import View

Content = Callable[[View, int], Sequence[Row]]
"""All of the rows for a width."""

FRAME = 2
"""Rows of the heading and of the keys."""


class Page(Panel):
    """A heading with the place in the text, the rows that fit, and the keys that move them."""

    KIND = "page"
    BINDINGS = bindings("page")

    def __init__(self, title: str, content: Content) -> None:
        super().__init__("page")
        self._title = title
        self._content = content
        self._offset = 0
        """Rows above the first that is shown."""
        self._length = 0

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The part that is looked at."""
        content = self._content(view, width)
        self._length = len(content)
        room = max(0, height - FRAME)
        self._offset = max(0, min(self._offset, len(content) - room))
        shown = list(content[self._offset : self._offset + room])
        place = place_words(self._offset, len(shown), len(content))
        filler = [EMPTY] * (room - len(shown))
        return [rule(self._title, place, width), *shown, *filler, keys_row(width)]

    def action_down(self) -> None:
        """A line further."""
        self._move(1)

    def action_up(self) -> None:
        """A line back."""
        self._move(-1)

    def action_page_down(self) -> None:
        """As much further as is shown, but for a line to hold on to."""
        self._move(self.size.height - FRAME - 1)

    def action_page_up(self) -> None:
        """As much back."""
        self._move(1 + FRAME - self.size.height)

    def action_first(self) -> None:
        """To the top."""
        self._move(-self._length)

    def action_last(self) -> None:
        """To the end."""
        self._move(self._length)

    def action_close(self) -> None:
        """Back to the screen."""
        self.screen.dismiss()

    def _move(self, by: int) -> None:
        self._offset += by
        self._redraw()


def place_words(first: int, shown: int, length: int) -> list[str]:
    """ "rows 11 to 30 of 64"; nothing where all is shown."""
    return [f"rows {first + 1} to {first + shown} of {length}"] if shown < length else []


def keys_row(width: int) -> Row:
    """The page's own keys, the way out at the right."""
    *first, last = [
        (Span(f" {key}", "key"), Span(f" {word} ", "dim"))
        for key, word in footer_of(actions_of("page"))
    ]
    return ends(tuple(span for entry in first for span in entry), last, width, gap=0)
