"""The least that Textual can show: what a first paint is measured against."""

from textual.app import App, ComposeResult
from textual.widgets import Static


class BareApp(App[None]):
    """One line of text."""

    def compose(self) -> ComposeResult:
        """The line."""
        yield Static("first text")


if __name__ == "__main__":
    BareApp().run(mouse=False)
