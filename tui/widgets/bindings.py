"""The table of keys as Textual wants it."""

from textual.binding import Binding, BindingType

from tui.keys import actions_of


def bindings(panel: str = "") -> list[BindingType]:
    """The keys of one kind of panel, or of "" those that work everywhere. Ctrl-C has priority:
    Textual keeps it for copying."""
    return [
        Binding(key, action.handler, action.description, show=False, priority=key == "ctrl+c")
        for action in actions_of(panel)
        for key in action.keys
    ]
