"""The sawtooth on the screen: alone, zoomed out, with its cursor, and back in time."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.timeseries.series import Series, StepEdges
from gpuwatch.tui.widgets.gpu.sawtooth import SawtoothPanel, shown_of
from gpuwatch.tui.widgets.panel import View
from gpuwatch.tui.widgets.text import Charset, text_of
from tests.tui.fake_run import MS, START, STEP_MS, FakeRun, S, busy, series_of, snapshot_at
from tests.tui.golden_text import assert_golden, picture_of, screen_text
from tests.tui.states import four_gpus, on_gpm

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
NOW = START + 4_000 * S


def drawn(
    view: View, width: int = 70, height: int = 10, panel: SawtoothPanel | None = None
) -> list[str]:
    """The panel's rows as text."""
    rows = (panel or SawtoothPanel("sawtooth")).rows(view, width, height)
    return [text_of(row) for row in rows]


def view_of(snapshot: Snapshot, window_s: int, **how: object) -> View:
    return replace(View(snapshot, window_s, Charset.UNICODE, None), **how)  # type: ignore[arg-type]


@cache
def hour(of: Callable[[int], float] = busy) -> Snapshot:
    """An hour of samples and steps: made for whoever draws it, not by each that collects tests."""
    run = on_gpm(snapshot_at(NOW))
    assert run.sawtooth is not None
    starts_ns = range(START, NOW, round(STEP_MS * MS))
    saw = replace(
        run.sawtooth,
        series=series_of(of, NOW, 100 * MS, samples=36_000),
        step_starts_ns=StepEdges.of(starts_ns),
        tensor=None,
    )
    return replace(run, sawtooth=saw)


@pytest.mark.parametrize("size", SIZES)
def test_alone(size: tuple[int, int]) -> None:
    text = picture_of(size, on_gpm, keys=["z"])
    assert_golden(f"sawtooth_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("window_s", [10, 30, 120, 600, 3_600])
def test_windows(window_s: int) -> None:
    text = "\n".join(row.rstrip() for row in drawn(view_of(hour(), window_s), 100, 14)) + "\n"
    assert_golden(f"sawtooth_window_{window_s}s", text)


def test_a_stall_and_a_spike_are_seen_in_an_hour() -> None:
    """One sample of 36,000 each."""

    def of(t_ns: int) -> float:
        return {NOW - 1_000 * S - 50 * MS: 0.0, NOW - 2_000 * S - 50 * MS: 99.0}.get(t_ns, 60.0)

    rows = drawn(view_of(hour(of), 3_600), 100, 10)
    assert "peak 99 · trough 0" in rows[0]
    assert [row.count("░") for row in rows[1:8]] == [1, 1, 0, 0, 0, 0, 0]
    assert [row.count("▒") for row in rows[1:8]] == [0, 0, 0, 1, 1, 1, 1]


def test_what_was_not_measured_is_blank_above_a_dashed_axis() -> None:
    run = snapshot_at(NOW)
    assert run.sawtooth is not None
    saw = replace(run.sawtooth, series=series_of(busy, NOW, 100 * MS, samples=40))
    rows = drawn(view_of(replace(run, sawtooth=saw), 10), 70, 10)
    assert rows[6][5:40].strip() == ""
    assert set(rows[8][5:40]) == {"┄", "┴"}
    assert "┄" not in rows[8][45:]


def at(end_ns: int, samples: int = 6_000) -> Snapshot:
    run = hour()
    assert run.sawtooth is not None
    series = series_of(busy, end_ns, 100 * MS, samples)
    return replace(run, t_ns=end_ns, sawtooth=replace(run.sawtooth, series=series))


def test_going_back_in_time_shows_what_was_then() -> None:
    then_ns = NOW - 300 * S
    back = drawn(view_of(hour(), 10, at_ns=then_ns, behind_s=300.0), 100, 10)
    assert back[-1].endswith(" 5 min ago")
    then = drawn(view_of(at(then_ns), 10), 100, 10)
    assert [row[:97] for row in back[:8]] == [row[:97] for row in then[:8]]


def test_nothing_is_drawn_finer_than_it_is_still_held() -> None:
    """As sampled ten minutes are held, and half an hour ago only means of a second."""
    then_ns = NOW - 2_000 * S
    back = drawn(view_of(replace(hour(), steps=None), 10, at_ns=then_ns), 100, 10)
    assert "gpm 100 ms" not in back[0]
    assert " 1 s means " in back[0]
    assert "a column is 1.0 s" in back[-1]
    # With steps that they would beat with, only means over several steps.
    back = drawn(view_of(hour(), 10, at_ns=then_ns), 100, 10)
    assert "a column is 4 steps" in back[-1]


def test_the_cursor_reads_what_stands_in_its_column() -> None:
    rows = drawn(view_of(hour(), 10, cursor_ns=NOW - 3 * S), 100, 10)
    assert {row.index("│") for row in rows[1:8]} == {rows[8].index("◆")}
    assert rows[-1].startswith("     ◆ -3.0 s · SM ")
    assert " · step 3," in rows[-1]
    assert "◆" not in "".join(drawn(view_of(hour(), 10, cursor_ns=NOW - 30 * S), 100, 10))


def test_where_no_row_is_left_the_cursor_reads_in_the_heading() -> None:
    rows = drawn(view_of(hour(), 10, cursor_ns=NOW - 3 * S), 60, 6)
    assert rows[0].startswith("── SM active % ")
    assert " -3.0 s · SM " in rows[0]
    assert len(rows) == 6


def test_without_steps_the_period_is_marked() -> None:
    run = replace(hour(), steps=None, recent=())
    assert " period ~1.2" in drawn(view_of(run, 10), 100, 10)[0]


def test_a_gpu_that_was_chosen_shows_its_own() -> None:
    run = four_gpus(snapshot_at(NOW))
    own: Series = replace(series_of(lambda _: 77.0, NOW, 100 * MS), name="sm", device=2)
    run = replace(run, series=(own,))
    shown = shown_of(view_of(run, 10, device=2))
    assert shown is not None
    assert (shown.title, shown.series, shown.tensor) == ("SM active % of GPU 2", own, None)
    assert shown_of(view_of(run, 10, device=3)) == run.sawtooth, "one that tells nothing"
    assert shown_of(view_of(run, 10)) == run.sawtooth


def driven(*keys: str, size: tuple[int, int] = (100, 30)) -> tuple[str, GpuwatchApp]:
    """The screen and the app, after the sawtooth was focused and keys were pressed."""

    async def session() -> tuple[str, GpuwatchApp]:
        app = GpuwatchApp(FakeRun(change=on_gpm))
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await settle(pilot)
            app.screen.query_one("#overview-sawtooth").focus()
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
            return screen_text(app), app

    return asyncio.run(session())


async def settle(pilot: Pilot[int]) -> None:
    await pilot.pause()
    await pilot.pause()


def axis_with_cursor(text: str) -> list[str]:
    return [row for row in text.splitlines() if "└" in row and "◆" in row]


def test_keys_move_the_cursor() -> None:
    def column(*keys: str) -> int:
        text, _ = driven(*keys)
        return axis_with_cursor(text)[0].index("◆")

    newest = column("left")
    assert newest == column("left", "right") == column("end") == 98
    assert column("left", "left", "left") == newest - 2
    assert column("left", "shift+left") == newest - 10
    assert column("left", "shift+left", "shift+right", "left") == newest - 1
    assert column("home") == column("home", "left") == 5


def test_r_takes_the_cursor_away_and_lets_the_window_follow_the_steps() -> None:
    text, _ = driven("left", "plus", "plus", "left_square_bracket")
    assert "└─" in text
    assert "window 2 min" in text
    text, app = driven("left", "plus", "plus", "left_square_bracket", "r")
    assert not axis_with_cursor(text)
    assert "window 10 s" in text
    looking = app._view_state
    assert (looking.cursor_ns, looking.held_ns, looking.window_chosen) == (None, None, False)
