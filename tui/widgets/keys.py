"""What keys do: the one table from which bindings, footer and help are made."""

from collections.abc import Iterable
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
    """What the footer calls the keys where it names several actions at once."""
    panel: str = ""
    """The kind of panel (`Panel.KIND`) that must have the focus; "" for everywhere."""


ACTIONS = (
    Action(("question_mark", "h", "f1"), "? h F1", "help", "this help", "help"),
    Action(("space",), "space", "pause", "pause the view; collecting goes on", "pause"),
    Action(("left_square_bracket",), "[", "scrub(-1)", "back in time, as windows go", "time"),
    Action(("right_square_bracket",), "]", "scrub(1)", "forward again", "time"),
    Action(("left_curly_bracket",), "{", "one_step(-1)", "back to the step before"),
    Action(("right_curly_bracket",), "}", "one_step(1)", "on to the step after"),
    Action(("home",), "home", "end(-1)", "the first moment that is known"),
    Action(("end",), "end", "end(1)", "now, or a recording's end"),
    Action(("x",), "x", "speed(1)", "replay: play twice as fast"),
    Action(("X",), "X", "speed(-1)", "replay: play half as fast"),
    Action(("plus", "equals_sign"), "+", "longer", "a longer window: 1 s to 1 h", "window"),
    Action(("minus",), "-", "shorter", "a shorter window", "window"),
    Action(("1",), "1", "tab('overview')", "the overview", "views", "1-6"),
    Action(("2",), "2", "tab('gpu')", "the GPU: activity, clocks, memory"),
    Action(("3",), "3", "tab('steps')", "the steps: phases on both clocks"),
    Action(("4",), "4", "tab('memory')", "memory, and where it is heading"),
    Action(("5",), "5", "tab('stacks')", "stacks: main thread, workers, pin"),
    Action(("6",), "6", "tab('processes')", "processes and events"),
    Action(("7",), "7", "tab('ranks')", "the ranks of a job, side by side"),
    Action(("less_than_sign",), "<", "device(-1)", "the GPU before, or the rank"),
    Action(("greater_than_sign",), ">", "device(1)", "the next GPU, or rank"),
    Action(("tab",), "tab", "focus_next", "the next panel"),
    Action(("shift+tab",), "shift+tab", "focus_previous", "the previous panel"),
    Action(("slash",), "/", "elsewhere('slash')", "find: stacks, processes, events"),
    Action(("o",), "o", "elsewhere('o')", "sort the processes"),
    Action(("s",), "s", "elsewhere('s')", "copy stacks, write flame graphs"),
    Action(("z",), "z", "zoom", "the focused panel alone, and back", "zoom"),
    Action(("enter",), "enter", "drill", "into the focused panel: why, lines"),
    Action(("i",), "i", "stacks_when", "stacks: while idle, busy, at any time"),
    Action(("b",), "b", "baseline", "compare all numbers with now", "baseline"),
    Action(("B",), "B", "no_baseline", "compare with nothing again"),
    Action(("R",), "R", "record", "write a recording; R again ends it"),
    Action(("e",), "e", "export", "write report, JSON and a picture", "export"),
    Action(("y",), "y", "copy", "copy the verdict as text"),
    Action(("p",), "p", "deep('profile')", "profile some steps; in 7 of all ranks"),
    Action(("m",), "m", "deep('memory')", "lines that keep memory: costs come first"),
    Action(("d",), "d", "doctor", "what is measured and what is not", "doctor"),
    Action(("T",), "T", "theme", "dark, light, contrast, terminal's"),
    Action(("escape",), "esc", "back", "out of zoom, pause or help"),
    Action(("ctrl+l",), "ctrl+l", "redraw", "draw the whole screen again"),
    Action(("ctrl+z",), "ctrl+z", "suspend_process", "to the shell; fg comes back"),
    Action(("r",), "r", "reset", "the newest, no cursor, own window"),
    Action(("left",), "←", "cursor(-1)", "read the column before", "read", "←", panel="chart"),
    Action(("right",), "→", "cursor(1)", "read the next column", "read", "→", panel="chart"),
    Action(("shift+left",), "shift+←", "cursor(-10)", "ten columns back", panel="chart"),
    Action(("shift+right",), "shift+→", "cursor(10)", "ten columns on", panel="chart"),
    Action(("home",), "home", "cursor(-9999)", "the oldest column", panel="chart"),
    Action(("end",), "end", "cursor(9999)", "the newest column", panel="chart"),
    Action(("left",), "←", "earlier", "the step before", "step", "←", panel="two clocks"),
    Action(("right",), "→", "later", "the step after", "step", "→", panel="two clocks"),
    Action(
        ("i",),
        "i",
        "stacks_when",
        "stacks: while idle, busy, any time",
        "idle/busy",
        panel="stacks",
    ),
    Action(("down", "j"), "↓ j", "down", "stacks: the next row", "rows", "↓", panel="stacks"),
    Action(("up", "k"), "↑ k", "up", "stacks: the row before", "rows", "↑", panel="stacks"),
    Action(("right", "l"), "→ l", "open", "stacks: into a branch", "branch", "→", panel="stacks"),
    Action(("left",), "←", "shut", "stacks: out of a branch", "branch", "←", panel="stacks"),
    Action(("enter",), "enter", "source", "stacks: the source lines", "source", panel="stacks"),
    Action(("slash",), "/", "find", "stacks: only rows with a text", "find", panel="stacks"),
    Action(("s",), "s", "copy_stacks", "stacks: copy, write flame graphs", "save", panel="stacks"),
    Action(("escape",), "esc", "out", "stacks: out of source or search", panel="stacks"),
    Action(("down", "j"), "↓ j", "next_rank", "the next rank", "rank", "↓", panel="ranks"),
    Action(("up", "k"), "↑ k", "previous_rank", "the rank before", "rank", "↑", panel="ranks"),
    Action(("down", "j"), "↓ j", "down", "a line down", "scroll", panel="page"),
    Action(("up", "k"), "↑ k", "up", "a line up", "scroll", panel="page"),
    Action(("pagedown", "right"), "pgdn →", "page_down", "a page down", panel="page"),
    Action(("pageup", "left"), "pgup ←", "page_up", "a page up", panel="page"),
    Action(("p", "m"), "p m", "begin", "profile, memory: begin, or again", panel="page"),
    Action(("s",), "s", "save", "profile, memory: keep the file", panel="page"),
    Action(("home", "g"), "home g", "first", "to the top", panel="page"),
    Action(("end", "G"), "end G", "last", "to the end", panel="page"),
    Action(
        ("escape", "q", "space", "enter", "question_mark", "h", "f1", "d"),
        "esc q",
        "close",
        "back to the screen",
        "back",
        panel="page",
    ),
    Action(("o",), "o", "sort", "sort: pid, cpu, memory, io", "sort", panel="processes"),
    Action(("slash",), "/", "filter", "only lines with some words", "filter", panel="processes"),
    Action(("down", "j"), "↓ j", "choose(1)", "the next process", "choose", panel="processes"),
    Action(("up", "k"), "↑ k", "choose(-1)", "the process before", "choose", panel="processes"),
    Action(("pagedown",), "pgdn", "choose(10)", "ten processes on", panel="processes"),
    Action(("pageup",), "pgup", "choose(-10)", "ten processes back", panel="processes"),
    Action(("slash",), "/", "filter", "only events of a kind", "filter", panel="events"),
    Action(("down", "j"), "↓ j", "older(1)", "older events", "scroll", panel="events"),
    Action(("up", "k"), "↑ k", "older(-1)", "newer events", "scroll", panel="events"),
    Action(("pagedown",), "pgdn", "older(10)", "ten older events", panel="events"),
    Action(("pageup",), "pgup", "older(-10)", "ten newer events", panel="events"),
    Action(
        ("q", "ctrl+c", "ctrl+q"),
        "q ctrl+c",
        "quit",
        "leave; the training goes on",
        "quit",
    ),
)


def actions_of(panel: str) -> tuple[Action, ...]:
    """The actions of one kind of panel; of "" those that work everywhere."""
    return tuple(action for action in ACTIONS if action.panel == panel)


def footer_keys(panel: str = "") -> list[tuple[str, str]]:
    """Keys and words for the footer, those of the focused kind of panel first."""
    return footer_of((*(actions_of(panel) if panel else ()), *actions_of("")))


def footer_of(actions: Iterable[Action]) -> list[tuple[str, str]]:
    """Keys and words; actions that share a word share an entry: "+/- window"."""
    keys: dict[str, list[str]] = {}
    for action in actions:
        if action.footer:
            keys.setdefault(action.footer, []).append(action.together or action.shown.split()[0])
    return [("/".join(names), word) for word, names in keys.items()]
