"""What `tui.screens.textual_private` needs of Textual, name by name: a new Textual that has changed
one fails here, with what no longer works."""

import ast
import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import textual
from textual.app import App, ComposeResult
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from gpuwatch.tui.screens.textual_private import (
    QuietlyFailing,
    remove_notices,
    rendered_rows,
    write_beside,
)
from tests.processes.command_line import ROOT

HERE = f"Textual {textual.__version__}"
TUI = ROOT / "tui"
OURS = [TUI / "app.py", *(TUI / "screens").rglob("*.py"), *(TUI / "widgets").rglob("*.py")]


class Shown(QuietlyFailing):
    """Three words."""

    def compose(self) -> ComposeResult:
        yield Static("one two three")

    def on_key(self) -> None:
        raise ValueError("on purpose")


def with_pilot(do: Callable[[Shown, Any], Awaitable[None]]) -> Shown:
    async def session() -> Shown:
        app = Shown()
        async with app.run_test(size=(40, 10), notifications=True) as pilot:
            await pilot.pause()
            await do(app, pilot)
        return app

    return asyncio.run(session())


def test_compositor() -> None:
    async def do(app: Shown, _: Any) -> None:
        compositor = getattr(app.screen, "_compositor", None)
        wanted = getattr(compositor, "render_strips", None)
        assert wanted is not None, f"{HERE}: exported screens need Screen._compositor.render_strips"
        rows = rendered_rows(app)
        assert [type(row) for row in rows] == [Strip] * 10, HERE
        assert "".join(segment.text for segment in rows[0]).rstrip() == "one two three", HERE

    with_pilot(do)


def test_toast_holder() -> None:
    async def do(app: Shown, pilot: Any) -> None:
        app.notify("first")
        await pilot.pause()
        holders = app.screen.query("ToastHolder")
        assert len(holders) == 1, f"{HERE}: a notice is not in a ToastHolder any more"
        app.clear_notifications()
        remove_notices(app.screen)
        await pilot.pause()
        assert not app.screen.query("ToastHolder"), f"{HERE}: an old notice keeps its row"

    with_pilot(do)


def test_what_is_written_beside_the_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    async def do(app: Shown, pilot: Any) -> None:
        assert app._driver is not None, f"{HERE}: there is no App._driver any more"
        monkeypatch.setattr(app._driver, "write", written.append)
        write_beside(app, "\a")

    with_pilot(do)
    assert "\a" in written, f"{HERE}: nothing but frames reaches the terminal"


@pytest.mark.parametrize("name", ["_handle_exception", "_fatal_error", "_close_messages_no_wait"])
def test_the_way_out_after_an_error(name: str) -> None:
    what = f"{HERE}: App.{name} is missing; a mistake of ours prints pages of locals over the shell"
    assert callable(getattr(App, name, None)), what


def test_an_error_is_kept_and_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    kept: list[Shown] = []

    async def do(app: Shown, pilot: Any) -> None:
        kept.append(app)
        await pilot.press("x")

    with pytest.raises(ValueError, match="on purpose"):
        with_pilot(do)
    assert str(kept[0].fault) == "on purpose", f"{HERE}: App._handle_exception is not called"
    assert "Traceback" not in capsys.readouterr().err, f"{HERE}: App._fatal_error is not called"


def private_names() -> set[str]:
    """What Textual's own classes have with an underscore, and what their methods set."""
    classes = {base for top in (App, ModalScreen, Widget) for base in top.__mro__}
    theirs = [base for base in classes if base.__module__.startswith("textual.")]
    names = {name for base in theirs for name in vars(base)}
    for base in theirs:
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[base.__module__]))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def names_in(path: Path) -> Iterator[str]:
    """Attributes that are used and methods that are defined."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            yield from (one.name for one in node.body if isinstance(one, ast.FunctionDef))


def test_no_other_file_uses_or_hides_a_private_name() -> None:
    private = private_names()
    assert {"_compositor", "_fatal_error"} <= private
    used = {str(path.relative_to(ROOT)): private & set(names_in(path)) for path in OURS}
    used.pop("tui/screens/textual_private.py")
    assert {path: names for path, names in used.items() if names} == {}
