"""The table of keys: each key once in its scope, each action with its method, none left out."""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from textual.widget import Widget

import gpuwatch.tui.widgets
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.widgets.dialogs import Page, help_rows
from gpuwatch.tui.widgets.keys import ACTIONS, actions_of, footer_keys
from gpuwatch.tui.widgets.panel import Panel
from gpuwatch.tui.widgets.text import text_of

KINDS = sorted({action.panel for action in ACTIONS} - {""})

ASKED = (
    *("q", "ctrl+c", "question_mark", "h", "f1", "space"),
    *"123456",
    *("tab", "enter", "escape", "z", "plus", "minus", "left_square_bracket"),
    *("right_square_bracket", "left_curly_bracket", "less_than_sign", "greater_than_sign"),
    *("i", "b", "r", "R", "e", "y", "d", "T", "ctrl+l", "ctrl+z"),
)
"""What works everywhere. None of them is left out."""
IN_PANELS = ("slash", "o", "up", "down", "left", "right", "h", "j", "k", "l")
"""What some panels do. (`h` is the help wherever a panel does not move by it.)"""


def panels() -> dict[str, type[Panel]]:
    """Every kind of panel with keys of its own, by `KIND`."""
    folder = Path(gpuwatch.tui.widgets.__file__).parent
    for module in walk_packages([str(folder)], "gpuwatch.tui.widgets."):
        import_module(module.name)
    found: dict[str, type[Panel]] = {}
    waiting = [Panel]
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        if one.KIND:
            found.setdefault(one.KIND, one)
    return found


def test_no_key_means_two_things_in_one_place() -> None:
    for kind in ("", *KINDS):
        keys = [key for action in actions_of(kind) for key in action.keys]
        assert sorted(keys) == sorted(set(keys)), kind


def test_every_action_has_its_method() -> None:
    owners: dict[str, type[object]] = {"": GpuwatchApp, **panels()}
    for action in ACTIONS:
        name = f"action_{action.handler.partition('(')[0]}"
        owner = owners[action.panel]
        # Textual's own methods are no answer for a panel's key.
        inherited = getattr(Widget, name, None) if action.panel else None
        assert callable(getattr(owner, name, None)), (action.panel, name)
        assert getattr(owner, name) is not inherited, (action.panel, name)


def test_every_panel_binds_what_the_table_shows() -> None:
    for kind, panel in panels().items():
        bound = {binding.key for binding in panel.BINDINGS}  # type: ignore[union-attr]
        assert bound == {key for action in actions_of(kind) for key in action.keys}, kind


@pytest.mark.parametrize("key", [*ASKED, *IN_PANELS])
def test_the_keys_that_were_asked_for_are_there(key: str) -> None:
    scopes = {action.panel for action in ACTIONS if key in action.keys}
    assert "" in scopes if key in ASKED else scopes


@pytest.mark.parametrize("width", [48, 78, 98, 198])
@pytest.mark.parametrize("panel", ["", *KINDS])
def test_the_help_names_every_action_and_the_focused_panels_first(panel: str, width: int) -> None:
    rows = [text_of(row) for row in help_rows(panel, width)]
    assert all(len(row) <= width for row in rows)
    words = " ".join(" ".join(rows).split())
    if width == 78:  # in one column, where no description wraps into another's
        for action in ACTIONS:
            assert " ".join(f"{action.shown} {action.description}".split()) in words
    first = rows[0].strip()
    assert first.startswith("Everywhere" if not panel else ("In the", "In this window"))


def test_the_footer_begins_with_the_focused_panels_keys() -> None:
    for kind in KINDS:
        own = [action for action in actions_of(kind) if action.footer]
        if own:
            assert footer_keys(kind)[0][1] == own[0].footer
    assert footer_keys("page")[-1][1] == footer_keys()[-1][1] == "quit"


def test_a_page_has_a_kind() -> None:
    assert panels()["page"] is Page
