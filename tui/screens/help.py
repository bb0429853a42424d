"""The help: every key, those of the focused panel first, and how to read the picture."""

from tui.screens.dialog import Dialog
from tui.widgets.help import help_rows
from tui.widgets.view import View


class HelpScreen(Dialog):
    """For the panel that had the focus when it was opened."""

    def __init__(self, view: View) -> None:
        super().__init__("Help", lambda _, width: help_rows(view.panel, width), view)
