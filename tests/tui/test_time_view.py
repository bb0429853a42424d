"""Pausing, looking back and scrubbing, as a person sees it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.provider import TimeTravelProvider
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.replay import ReplayProvider
from gpuwatch.tui.verdict.engine import Engine
from tests.tui.fake_run import FakeRun, S
from tests.tui.golden_text import assert_golden, screen_text
from tests.unit.recording.files import opened
from tests.unit.recording.test_scrubbing import Hand

SIZES = [(80, 24), (100, 30)]
REAL = Path(__file__).parents[2] / "demo/recordings/loader_workers.gpuwatch"

Do = Callable[[GpuwatchApp, Pilot[int]], Awaitable[None]]


def session(picture: TimeTravelProvider, do: Do, size: tuple[int, int] = (100, 30)) -> None:
    """Do something in an app whose frames come when the test says so."""

    async def run() -> None:
        app = GpuwatchApp(picture, frames_s=0.001)
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await do(app, pilot)

    asyncio.run(run())


async def text_after(app: GpuwatchApp, pilot: Pilot[int], *keys: str) -> str:
    """The screen after some keys."""
    await pilot.press(*keys)
    app.frame()
    await pilot.pause()
    return screen_text(app)


def header(text: str) -> str:
    """The first line."""
    return text.splitlines()[0]


def picture(text: str) -> list[str]:
    """All below the header, but for how long ago the picture was."""
    return [line for line in text.splitlines()[1:] if not line.endswith((" ago", " now"))]


async def watched(app: GpuwatchApp, run: FakeRun, seconds: int) -> None:
    """The run goes on, and is read as frames read it; only the last one is drawn."""
    for _ in range(seconds):
        run.now_ns += S
        app._time.moment(app._view_state)
    app.frame()
    await asyncio.sleep(0)


@pytest.mark.parametrize("size", SIZES)
def test_paused_in_the_past(size: tuple[int, int]) -> None:
    run = FakeRun()

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await watched(app, run, 60)
        await text_after(app, pilot, *["left_square_bracket"] * 10)
        run.now_ns += 30 * S
        text = await text_after(app, pilot)
        assert "AT 08:24:07, 42 s ago" in header(text)
        assert "[/] time" in text.splitlines()[-1]
        assert_golden(f"time_past_{size[0]}x{size[1]}", text)

    session(run, do, size)


def test_what_is_asked_while_paused_is_asked_of_the_held_picture() -> None:
    run = FakeRun()

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        app.frame()
        await text_after(app, pilot, "plus", "minus")  # a window that was chosen, before and after
        held = await text_after(app, pilot, "space")
        assert "PAUSED +0 s behind" in header(held)
        before = picture(held)
        await watched(app, run, 300)
        assert picture(await text_after(app, pilot)) == before
        for key in "23456":
            text = await text_after(app, pilot, key)
            assert "PAUSED +5 min behind" in header(text)
        text = await text_after(app, pilot, "3")
        assert "18,204" in text
        text = await text_after(app, pilot, "1", "z", "plus")
        assert "PAUSED +5 min behind" in header(text)
        text = await text_after(app, pilot, "z", "minus")
        assert picture(text) == before

    session(run, do)


def test_one_goes_back_and_forward_and_to_the_ends() -> None:
    run = FakeRun()

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        app.frame()
        await watched(app, run, 90)
        newest = await text_after(app, pilot)
        back = await text_after(app, pilot, *["left_square_bracket"] * 16)
        assert "AT 08:24:30, 20 s ago" in header(back)
        assert "Step 18,261" in back
        forth = await text_after(app, pilot, *["right_square_bracket"] * 8)
        assert "AT 08:24:40, 10 s ago" in header(forth)
        start = await text_after(app, pilot, "home")
        assert "AT 08:23:20, 90 s ago" in header(start)
        assert "Step 18,204" in start
        assert await text_after(app, pilot, "end") == newest

    session(run, do)


def test_one_step_back_is_the_tick_before() -> None:
    run = FakeRun()

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        app.frame()
        await watched(app, run, 30)
        await text_after(app, pilot, "space", *["left_curly_bracket"] * 3)
        saw = run.snapshot().sawtooth
        assert saw is not None
        assert app._view_state.held_ns == saw.step_starts_ns[-3]
        await text_after(app, pilot, "right_curly_bracket")
        assert app._view_state.held_ns == saw.step_starts_ns[-2]

    session(run, do)


def test_far_back_the_header_shows_when_the_numbers_are_from() -> None:
    run = FakeRun()

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        app.frame()
        await watched(app, run, 400)
        app._view_state = app._view_state.over(600)
        text = await text_after(app, pilot, *["left_square_bracket"] * 3)
        assert "AT 08:26:15, 4 min ago, numbers of 08:26:10" in header(text)

    session(run, do, (160, 45))


def test_keys_that_play_mean_nothing_while_the_run_goes_on() -> None:
    run = FakeRun()

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        app.frame()
        before = await text_after(app, pilot)
        assert await text_after(app, pilot, "x", "X", "end") == before
        assert "[/] time" not in before

    session(run, do)


@pytest.fixture
def hand() -> Hand:
    """The clock of a replay."""
    return Hand()


@pytest.fixture
def replay(hand: Hand) -> ReplayProvider:
    """Of a run on an H200."""
    return ReplayProvider(Recording(REAL), Engine(), hand)


@pytest.mark.parametrize("size", SIZES)
def test_replaying(replay: ReplayProvider, hand: Hand, size: tuple[int, int]) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        for name, to_s, place in (
            ("start", 0, "REPLAY 0:00 of 0:21 ▸ 1x"),
            ("middle", 12, "REPLAY 0:12 of 0:21 ▸ 1x"),
            ("over", 60, "REPLAY 0:21 of 0:21 ■ over"),
        ):
            hand.ns = to_s * S
            text = await text_after(app, pilot)
            assert place in header(text)
            assert_golden(f"time_replay_{name}_{size[0]}x{size[1]}", text)

    session(replay, do, size)


@pytest.mark.parametrize("size", SIZES)
def test_a_damaged_end(tmp_path: Path, hand: Hand, size: tuple[int, int]) -> None:
    data = bytearray(REAL.read_bytes())
    data[len(data) // 2] ^= 0xFF
    replay = ReplayProvider(opened(tmp_path, bytes(data)), Engine(), hand)

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        hand.ns = 60 * S
        text = await text_after(app, pilot)
        assert "REPLAY 0:09 of 0:09 ■ over: the rest of the file is damaged" in header(text)
        assert "loader_wor" in header(text)
        assert_golden(f"time_replay_damaged_{size[0]}x{size[1]}", text)

    session(replay, do, size)


def test_the_word_for_damage_leaves_before_the_target_does(tmp_path: Path, hand: Hand) -> None:
    replay = ReplayProvider(opened(tmp_path, REAL.read_bytes()[:-500]), Engine(), hand)

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        hand.ns = 60 * S
        line = header(await text_after(app, pilot))
        assert "■ over" in line
        assert "in order" not in line
        assert "loader_wor" in line

    session(replay, do, (50, 20))


def test_a_replay_is_held_scrubbed_and_plays_on(replay: ReplayProvider, hand: Hand) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        hand.ns = 9 * S
        assert "0:09 of 0:21 ▸ 1x" in header(await text_after(app, pilot))
        text = await text_after(app, pilot, "space")
        assert "0:09 of 0:21 ■ paused" in header(text)
        assert "go on" in text.splitlines()[-1]
        hand.ns += 60 * S
        assert await text_after(app, pilot) == text
        assert "0:21 of 0:21 ■ over" in header(await text_after(app, pilot, "end"))
        assert "0:00 of 0:21 ■ paused" in header(await text_after(app, pilot, "home"))
        assert "0:00 of 0:21 ▸ 1x" in header(await text_after(app, pilot, "space"))
        hand.ns += 4 * S
        assert "0:04 of 0:21 ▸ 2x" in header(await text_after(app, pilot, "x"))
        hand.ns += 4 * S
        assert "0:12 of 0:21 ▸ 2x" in header(await text_after(app, pilot))
        hand.ns += 60 * S
        assert "0:21 of 0:21 ■ over" in header(await text_after(app, pilot))
        assert "0:21 of 0:21 ▸" not in header(await text_after(app, pilot, "left_square_bracket"))

    session(replay, do)


@pytest.mark.parametrize("key", ["left_square_bracket", "left_curly_bracket"])
def test_going_back_pauses_a_replay(replay: ReplayProvider, hand: Hand, key: str) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        hand.ns = 9 * S
        await text_after(app, pilot)
        text = await text_after(app, pilot, key)
        assert "■ paused" in header(text)
        hand.ns += 5 * S
        assert await text_after(app, pilot) == text
        assert "▸ 1x" in header(await text_after(app, pilot, "space"))

    session(replay, do)


def test_a_replay_draws_the_past_as_it_was(replay: ReplayProvider, hand: Hand) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        hand.ns = 9 * S
        then = (await text_after(app, pilot, "space")).splitlines()
        held_ns = app._view_state.held_ns
        await text_after(app, pilot, "end")
        assert held_ns is not None
        app._view_state = app._view_state.at(held_ns, replay.reach)
        again = (await text_after(app, pilot)).splitlines()
        axis = next(i for i, line in enumerate(then) if "└" in line)
        chart = [i for i, line in enumerate(then[:axis]) if "┤" in line]
        assert len(chart) >= 5
        # The sample of the last tenth of a second had not come then: its column is one more now.
        assert [f"{again[i]:<100}"[:97] for i in chart] == [f"{then[i]:<100}"[:97] for i in chart]

    session(replay, do)
