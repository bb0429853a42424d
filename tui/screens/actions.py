"""What keys do: the one table from which bindings, footer and help are made."""

from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a person can do."""

    keys: tuple[str, ...]
    """Textual's names of the keys."""
    shown: str
    """The keys as people call them, the first for the footer."""
    handler: str
    """The app's method is `action_` + this."""
    description: str
    footer: str = ""
    """Its word in the footer; "" leaves it to the help."""


ACTIONS = (
    Action(("question_mark", "h", "f1"), "? h F1", "help", "this help", "help"),
    Action(("space", "p"), "space p", "pause", "pause the view; collecting goes on", "pause"),
    Action(("plus", "equals_sign"), "+", "longer", "a longer window: 1 s to 10 min", "window"),
    Action(("minus",), "-", "shorter", "a shorter window", "window"),
    Action(("tab",), "tab", "focus_next", "the next panel"),
    Action(("shift+tab",), "shift+tab", "focus_previous", "the previous panel"),
    Action(("z", "enter"), "z enter", "zoom", "the focused panel alone, and back", "zoom"),
    Action(("R",), "R", "record", "write a recording, with the 2 min before; R ends it"),
    Action(("escape",), "esc", "back", "out of zoom, pause or help"),
    Action(("ctrl+l",), "ctrl+l", "redraw", "draw the whole screen again"),
    Action(("ctrl+z",), "ctrl+z", "suspend_process", "to the shell; fg comes back"),
    Action(
        ("q", "ctrl+c", "ctrl+q"),
        "q ctrl+c",
        "quit",
        "leave; the training goes on untouched",
        "quit",
    ),
)


def bindings() -> list[BindingType]:
    """The table as Textual wants it. Ctrl-C has priority: Textual keeps it for copying."""
    return [
        Binding(key, action.handler, action.description, show=False, priority=key == "ctrl+c")
        for action in ACTIONS
        for key in action.keys
    ]


def footer_keys() -> list[tuple[str, str]]:
    """The footer's keys and words; actions that share a word share an entry: "+/- window"."""
    keys: dict[str, list[str]] = {}
    for action in ACTIONS:
        if action.footer:
            keys.setdefault(action.footer, []).append(action.shown.split()[0])
    return [("/".join(names), word) for word, names in keys.items()]
