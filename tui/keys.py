"""What keys do: the one table from which bindings, footer and help are made."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a person can do."""

    keys: tuple[str, ...]
    """Textual's names of the keys."""
    shown: str
    """The keys as people call them, the first for the footer."""
    handler: str
    """The method is `action_` + this: the app's, or the panel's where `panel` names one."""
    description: str
    footer: str = ""
    """Its word in the footer; "" leaves it to the help."""
    together: str = ""
    """What the footer calls the keys where it speaks of several actions at once."""
    panel: str = ""
    """The kind of panel (`Panel.KIND`) that must have the focus; "" for everywhere."""


ACTIONS = (
    Action(("question_mark", "h", "f1"), "? h F1", "help", "this help", "help"),
    Action(("space", "p"), "space p", "pause", "pause the view; collecting goes on", "pause"),
    Action(("plus", "equals_sign"), "+", "longer", "a longer window: 1 s to 10 min", "window"),
    Action(("minus",), "-", "shorter", "a shorter window", "window"),
    Action(("1",), "1", "tab('overview')", "the overview", "views", "1-6"),
    Action(("2",), "2", "tab('gpu')", "the GPU: activity, clocks, memory, who else is on it"),
    Action(("3",), "3", "tab('steps')", "the steps: both clocks, phases, the inside of one"),
    Action(("4",), "4", "tab('memory')", "memory, and where it is heading"),
    Action(("5",), "5", "tab('stacks')", "stacks of the main thread, workers and pin thread"),
    Action(("6",), "6", "tab('processes')", "processes and events"),
    Action(("tab",), "tab", "focus_next", "the next panel"),
    Action(("shift+tab",), "shift+tab", "focus_previous", "the previous panel"),
    Action(("z",), "z", "zoom", "the focused panel alone, and back", "zoom"),
    Action(("enter",), "enter", "drill", "into the focused panel: why, source lines, a rank"),
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


def actions_of(panel: str) -> tuple[Action, ...]:
    """The actions of one kind of panel; of "" those that work everywhere."""
    return tuple(action for action in ACTIONS if action.panel == panel)


def footer_keys(panel: str = "") -> list[tuple[str, str]]:
    """Keys and words for the footer, those of the focused kind of panel first; actions that share
    a word share an entry: "+/- window"."""
    keys: dict[str, list[str]] = {}
    own = actions_of(panel) if panel else ()
    for action in (*own, *actions_of("")):
        if action.footer:
            keys.setdefault(action.footer, []).append(action.together or action.shown.split()[0])
    return [("/".join(names), word) for word, names in keys.items()]
