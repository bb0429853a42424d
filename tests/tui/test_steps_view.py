"""The steps view at every size and in every state, as golden text."""

import asyncio

import pytest
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.widgets.text import Charset
from tests.tui import states, step_states
from tests.tui.fake_run import FakeRun, S
from tests.tui.golden_text import assert_golden, picture_of, screen_text

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", ["gpu_bound", "launch_bound", "without_gpu"])
def test_the_view(state: str, size: tuple[int, int]) -> None:
    text = picture_of(size, getattr(step_states, state), ["3"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"steps_{state}_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("state", ["data_bound", "far_ahead", "folded"])
def test_other_shapes(state: str) -> None:
    text = picture_of((100, 30), getattr(step_states, state), ["3"])
    assert_golden(f"steps_{state}_100x30", text)


def test_before_the_first_step_every_panel_shows_it() -> None:
    text = picture_of((100, 30), states.connecting, ["3"]).split("1 overview")[1]
    assert text.count("waiting for the first steps") == 4


def test_ascii() -> None:
    text = picture_of((80, 24), step_states.gpu_bound, ["3"], charset=Charset.ASCII)
    assert text.isascii()
    assert "?" not in text.replace("? help", "")
    assert_golden("steps_ascii_80x24", text)


@pytest.mark.parametrize(
    ("panel", "at"), [("two_clocks", 1), ("phases", 2), ("scope", 3), ("times", 4)]
)
def test_each_panel_alone(panel: str, at: int) -> None:
    text = picture_of((100, 30), step_states.folded, ["3", *["tab"] * at, "z"])
    assert_golden(f"steps_zoomed_{panel}_100x30", text)


def test_the_arrows_choose_the_step_that_the_picture_ends_with() -> None:
    async def session() -> None:
        app = GpuwatchApp(FakeRun(change=step_states.launch_bound))
        async with app.run_test(size=(100, 30)) as pilot:
            await app.begun.wait()
            await pilot.press("3", "tab")
            newest = await _last_step(app, pilot)
            await pilot.press("left", "left")
            assert await _last_step(app, pilot) == newest - 2
            assert "chosen" in screen_text(app)
            await pilot.press("right", "right", "right")
            assert await _last_step(app, pilot) == newest
            assert "chosen" not in screen_text(app)

    asyncio.run(session())


async def _last_step(app: GpuwatchApp, pilot: Pilot[int]) -> int:
    app.frame()
    await pilot.pause()
    reported = next(line for line in screen_text(app).splitlines() if line.startswith(" step "))
    return int(reported.split()[1].replace(",", ""))


def test_a_picture_of_short_steps_stays_for_a_second() -> None:
    run = FakeRun(change=step_states.launch_bound)

    async def session() -> None:
        app = GpuwatchApp(run, frames_s=0.001)
        async with app.run_test(size=(100, 30)) as pilot:
            await app.begun.wait()
            await pilot.press("3")
            first = await _last_step(app, pilot)
            shown = []
            for _ in range(5):
                run.now_ns += S // 4
                shown.append(await _last_step(app, pilot))
            assert shown[:3] == [first] * 3
            assert shown[4] > first + 100

    asyncio.run(session())


def test_the_change_since_the_moment_that_was_marked() -> None:
    run = FakeRun(change=step_states.gpu_bound)

    async def session() -> str:
        app = GpuwatchApp(run)
        async with app.run_test(size=(100, 30)) as pilot:
            await app.begun.wait()
            await pilot.press("3", "b")
            run.now_ns += 182 * S
            run.change = step_states.slower
            app.frame()
            await pilot.pause()
            text = screen_text(app)
            await pilot.press("B")
            assert "against" not in screen_text(app)
            return text

    text = asyncio.run(session())
    assert "against step 18,204 (3 min ago)" in text
    assert_golden("steps_against_baseline_100x30", text)


def test_nothing_has_changed_where_nothing_has() -> None:
    text = picture_of((100, 30), step_states.gpu_bound, ["3", "b"], later_ns=60 * S)
    assert "against step 18,204 (60 s ago)" in text
    table = text.split("Phases of")[1].split("How long")[0]
    assert "change" in table
    assert not {"▲", "▼"} & set(table)


def test_events_stand_under_the_steps_that_they_happened_in() -> None:
    text = picture_of((100, 30), step_states.with_events, ["3"])
    assert_golden("steps_with_events_100x30", text)


def test_a_step_of_several_batches_shows_that_its_parts_are_summed() -> None:
    text = picture_of((100, 30), step_states.accumulating, ["3"])
    assert "4 fetches, summed" in text


def test_the_overview_shows_what_a_step_takes_against_the_baseline() -> None:
    run = FakeRun(change=step_states.gpu_bound)

    async def session() -> str:
        app = GpuwatchApp(run)
        async with app.run_test(size=(200, 60)) as pilot:
            await app.begun.wait()
            await pilot.press("b")
            run.now_ns += 182 * S
            run.change = step_states.slower
            app.frame()
            await pilot.pause()
            return screen_text(app)

    text = asyncio.run(session())
    assert "▲ +24% against step 18,204 (3 min ago)" in text
    assert "▲ +62%" in text
    assert "▼ -50%" in text


def test_no_size_breaks() -> None:
    sizes = [(1, 1), (20, 5), (40, 12), (41, 13), (45, 29), (59, 60), (250, 18), (60, 100)]
    run = FakeRun(change=step_states.far_ahead)

    async def session() -> None:
        app = GpuwatchApp(run)
        async with app.run_test(size=(100, 30)) as pilot:
            await app.begun.wait()
            await pilot.press("3", "b")
            for change in (step_states.far_ahead, step_states.without_gpu, states.incomplete):
                run.change = change
                for width, height in sizes:
                    await pilot.resize_terminal(width, height)
                    await pilot.pause()
                    app.frame()
                    await pilot.pause()
                    lines = screen_text(app).splitlines()
                    assert all(len(line) <= width for line in lines)

    asyncio.run(session())
