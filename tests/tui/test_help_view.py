"""The help at every size, and moving in it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.widgets.text import Charset
from tests.tui.fake_run import FakeRun, S
from tests.tui.golden_text import assert_golden, picture_of, screen_text

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]


def session(
    size: tuple[int, int], do: Callable[[GpuwatchApp, Pilot[int], FakeRun], Awaitable[None]]
) -> None:
    run = FakeRun()

    async def play() -> None:
        app = GpuwatchApp(run)
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await do(app, pilot, run)

    asyncio.run(play())


@pytest.mark.parametrize("size", SIZES)
def test_the_help(size: tuple[int, int]) -> None:
    text = picture_of(size, keys=["question_mark"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"help_{size[0]}x{size[1]}", text)


def test_the_focused_panels_keys_come_first() -> None:
    text = picture_of((100, 30), keys=["tab", "tab", "question_mark"])
    below = text[text.index("── Help") :].splitlines()
    assert below[1].startswith(" In the chart")
    assert_golden("help_of_the_chart_100x30", text)


def test_it_opens_and_closes() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        for close in ("escape", "question_mark", "q", "enter"):
            await pilot.press("question_mark")
            await pilot.pause()
            assert "── Help" in screen_text(app)
            await pilot.press(close)
            await pilot.pause()
            assert "── Help" not in screen_text(app)
            assert app.is_running

    session((100, 30), do)


def test_every_row_can_be_reached_and_nothing_beyond() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        assert "rows 1 to 20 of" in screen_text(app)
        await pilot.press("down", "j")
        await pilot.pause()
        assert "rows 3 to 22 of" in screen_text(app)
        await pilot.press("up")
        await pilot.press("pagedown")
        await pilot.pause()
        assert "rows 21 to 40 of" in screen_text(app)
        await pilot.press("G")
        await pilot.pause()
        last = screen_text(app)
        await pilot.press("down", "pagedown")
        await pilot.pause()
        assert screen_text(app) == last
        await pilot.press("g", "up", "pageup")
        await pilot.pause()
        assert "rows 1 to 20 of" in screen_text(app)

    session((80, 24), do)


def test_header_and_verdict_stay_in_sight_and_go_on() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        await pilot.press("question_mark")
        app.frame()
        await pilot.pause()
        assert "INPUT-BOUND  critical · 92% sure · 6 min" in screen_text(app)
        run.change = lambda now: now
        run.now_ns += 2 * S
        await pilot.resize_terminal(100, 30)
        app.frame()
        await pilot.pause()
        assert "INPUT-BOUND   critical" in screen_text(app)
        assert "── Help" in screen_text(app)

    session((80, 24), do)


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (20, 5), (39, 11), (45, 12)])
def test_no_size_breaks_it(size: tuple[int, int]) -> None:
    picture_of(size, keys=["question_mark"])
    picture_of(size, keys=["d"])


@pytest.mark.parametrize("key", ["question_mark", "d"])
def test_in_ascii_nothing_is_lost(key: str) -> None:
    text = picture_of((100, 60), keys=[key], charset=Charset.ASCII)
    assert text.isascii()
    assert text.count("?") == (1 if key == "question_mark" else 0)
