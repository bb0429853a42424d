"""The focus is always in sight, and a key of another panel finds it or says where it is."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.widgets.processes.events import EventsPanel
from gpuwatch.tui.widgets.processes.panel import ProcessesPanel
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import screen_text

SIZES = [(39, 11), (50, 20), (80, 24), (100, 30), (200, 60)]
Do = Callable[[GpuwatchApp, Pilot[int]], Awaitable[None]]


def session(do: Do, size: tuple[int, int] = (100, 30)) -> None:
    async def play() -> None:
        app = GpuwatchApp(FakeRun())
        async with app.run_test(size=size, notifications=True) as pilot:
            await app.begun.wait()
            app.frame()
            await pilot.pause()
            await do(app, pilot)

    asyncio.run(play())


@pytest.mark.parametrize("view", "123456")
@pytest.mark.parametrize("size", SIZES)
def test_wherever_the_focus_is_one_sees_it(size: tuple[int, int], view: str) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await pilot.press(view)
        await pilot.pause()
        app.set_focus(None)
        app.frame()
        await pilot.pause()
        assert "▸" not in screen_text(app)
        for _ in app.screen.focus_chain:
            await pilot.press("tab")
            app.frame()
            await pilot.pause()
            assert "▸" in screen_text(app), app.focused

    session(do, size)


def test_the_first_tab_is_at_the_views_first_panel_and_the_verdict_comes_last() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        for view, first in (("2", "gpu-charts"), ("3", "steps-two-clocks"), ("4", "memory-room")):
            await pilot.press(view, "tab")
            assert app.focused is not None
            assert app.focused.id == first
            await pilot.press("shift+tab")
            assert app.focused.id == "verdict"

    session(do)


@pytest.mark.parametrize(("view", "first"), [("5", "stacks-tree"), ("6", "processes-processes")])
def test_views_that_one_walks_through_have_the_focus_at_once(view: str, first: str) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        for _ in range(2):
            await pilot.press(view)
            await pilot.pause()
            assert app.focused is not None
            assert app.focused.id == first
            await pilot.press("1")
            assert app.focused is None

    session(do)


def test_what_is_typed_after_a_slash_is_text_wherever_the_focus_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one burst, as a terminal sends it: no `e` writes files, no `r` resets."""
    monkeypatch.chdir(tmp_path)

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        for view, before in (("1", None), ("6", None), ("6", "#processes-cores")):
            await pilot.press(view)
            await pilot.pause()
            app.set_focus(None if before is None else app.screen.query_one(before))
            await pilot.pause()
            for character in "/worker":
                key = "slash" if character == "/" else character
                app.post_message(events.Key(key, character))
            for _ in range(5):
                await pilot.pause()
            panel = app.focused
            assert isinstance(panel, ProcessesPanel)
            assert panel.words == "worker"
            assert panel.typing
            await pilot.press("escape")
        assert list(tmp_path.iterdir()) == []

    session(do, (200, 60))


def test_a_panel_that_has_the_key_keeps_it() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await pilot.press("6", "tab", "tab", "slash", *"check")
        panel = app.focused
        assert isinstance(panel, EventsPanel)
        assert panel.words == "check"

    session(do)


def test_sorting_goes_to_the_processes() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await pilot.press("6", "tab", "o")
        app.frame()
        await pilot.pause()
        assert isinstance(app.focused, ProcessesPanel)
        assert "↓cpu" in screen_text(app)

    session(do)


@pytest.mark.parametrize(
    ("view", "key", "line"),
    [
        ("2", "slash", "/ finds rows of stacks, processes and events: 5 or 6, then /"),
        ("2", "o", "o sorts the processes: 6, then o"),
        ("1", "s", "s copies and writes the stacks: 5, then s"),
        ("1", "x", "x and X are for a recording that plays"),
        ("1", "R", "R records a run while it is watched: this is a recording already"),
        ("1", "less_than_sign", "< and > choose among GPUs or ranks: one is known here"),
    ],
)
def test_where_a_key_does_nothing_one_line_shows_it(view: str, key: str, line: str) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await pilot.press(view)
        before = screen_text(app).splitlines()
        await pilot.press(key)
        await pilot.pause()
        after = screen_text(app).splitlines()
        assert after[:-1] == before[:-1]
        assert after[-1].strip() == line

    session(do, (80, 24))


def test_one_notice_at_a_time() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await pilot.press("o", "s")
        await pilot.pause()
        assert screen_text(app).splitlines()[-1].strip().startswith("s copies")
        assert len(app._notifications) == 1

    session(do, (80, 24))
