"""Names that Textual keeps to itself and that we need all the same. They are nowhere else, and
tests/tui/test_textual_private.py says which of them a new Textual has changed."""

from typing import Any

from textual.app import App
from textual.screen import Screen
from textual.strip import Strip


def rendered_rows(app: App[Any]) -> list[Strip]:
    """The rows of the screen as Textual writes them to the terminal, dialogs included."""
    return app.screen._compositor.render_strips(app.size)


def remove_notices(screen: Screen[Any]) -> None:
    """Take the notices off the screen. `App.clear_notifications` leaves an empty row for each."""
    screen.query("ToastHolder").remove()


def write_beside(app: App[Any], text: str) -> None:
    """Send the terminal something that is no part of a frame, between two of them, as `App.bell`
    does with its one character."""
    if app._driver is not None:
        app._driver.write(text)


class QuietlyFailing(App[int]):
    """Keeps the error that ended it. Textual's own way is to print pages of locals over the shell;
    `run_on_terminal` says it in three lines and keeps the rest in a file."""

    fault: Exception | None = None
    """The first mistake of ours, which ended it."""

    def _handle_exception(self, error: Exception) -> None:
        self.fault = self.fault or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()
