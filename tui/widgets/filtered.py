"""A panel whose lines can be narrowed to those with some words in them."""

from textual import events

from tui.keys import ACTIONS
from tui.widgets.panel import Panel

BEGIN = frozenset(key for action in ACTIONS if action.handler == "filter" for key in action.keys)


class FilteredPanel(Panel):
    """`/` begins to type, enter keeps the words, esc forgets them.

    Keys that come in one burst are with the panel before the first of them has become an action:
    so that which begins to type is taken here.
    """

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.words = ""
        self.typing = False

    def action_filter(self) -> None:
        """Begin to type."""
        self.typing = True
        self._redraw()

    def on_key(self, event: events.Key) -> None:
        """While typing every key means its character: none of them reaches the bindings."""
        if not self.typing:
            if event.key in BEGIN:
                event.stop()
                self.action_filter()
            elif event.key == "escape" and self.words:
                self.words = ""
                event.stop()
                self._redraw()
            return
        self.take_key(event)

    def take_key(self, event: events.Key) -> None:
        """More of the words, or the end of them."""
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self.typing = False
        elif event.key == "escape":
            self.typing, self.words = False, ""
        elif event.key == "backspace":
            self.words = self.words[:-1]
        elif event.character is not None and event.is_printable:
            self.words += event.character
        self._redraw()

    def on_blur(self) -> None:
        """The keys mean something else now."""
        self.typing = False

    @property
    def filter_note(self) -> str:
        """ "/ worker▏" while typing, "/ worker" while it narrows, else ""."""
        if self.typing:
            return f"/ {self.words}▏"
        return f"/ {self.words}" if self.words else ""
