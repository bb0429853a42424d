"""Keys do what the table says, and the table is the only place that says it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.live import LiveRecording
from gpuwatch.tui.widgets.footer import NAMES
from tests.tui.fake_run import FakeRun, RunClock, S
from tests.tui.golden_text import screen_text
from tests.tui.process_states import launched
from tests.unit.recording.files import HEADER


def _session(
    do: Callable[[GpuwatchApp, Pilot[int], FakeRun], Awaitable[None]], run: FakeRun | None = None
) -> FakeRun:
    run = run or FakeRun()

    async def session() -> None:
        app = GpuwatchApp(run)
        async with app.run_test(size=(100, 30)) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await do(app, pilot, run)

    asyncio.run(session())
    return run


def test_quit_keys() -> None:
    for key in ("q", "ctrl+c", "ctrl+q"):

        async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun, key: str = key) -> None:
            await pilot.press(key)
            await pilot.pause()
            assert app.return_value == 0

        _session(do)


def test_a_frame_that_comes_while_the_screen_is_taken_down_draws_nothing() -> None:
    # The timer is the last to go: its frame must not ask for a panel that is no longer there.
    late: list[GpuwatchApp] = []

    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        late.append(app)

    _session(do)
    late[0].frame()


def test_ctrl_c_leaves_from_the_help_too() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        await pilot.press("question_mark", "ctrl+c")
        await pilot.pause()
        assert app.return_value == 0

    _session(do)


def test_pause_holds_the_view_and_goes_on() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        app.frame()
        await pilot.press("space")
        run.now_ns += 37 * S
        app.frame()
        await pilot.pause()
        held = screen_text(app)
        assert "PAUSED +37 s behind" in held
        assert "Step 18,204" in held
        assert "go on" in held
        await pilot.press("space")
        await pilot.pause()
        assert "PAUSED" not in screen_text(app)
        assert "Step 18,234" in screen_text(app)

    _session(do)


def test_windows() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        app.frame()
        await pilot.pause()
        assert "window 10 s" in screen_text(app)
        for keys, shown in (
            (["minus"], "window 10 s"),
            (["plus"], "window 30 s"),
            (["plus", "plus"], "window 10 min"),
            (["plus"], "window 1 h"),
            (["plus"], "window 1 h"),
            (["minus"], "window 10 min"),
        ):
            await pilot.press(*keys)
            await pilot.pause()
            assert shown in screen_text(app)

    _session(do)


@pytest.mark.parametrize(("tab", "label"), [("4", "-30 s"), ("6", "last 30 s")])
def test_charts_of_what_changes_slowly_follow_a_window_once_it_is_chosen(
    tab: str, label: str
) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        await pilot.press(tab)
        app.frame()
        await pilot.pause()
        assert "window all" in screen_text(app)
        assert label not in screen_text(app)
        await pilot.press("plus")
        await pilot.pause()
        assert "window 30 s" in screen_text(app)
        assert label in screen_text(app)
        await pilot.press("r")
        await pilot.pause()
        assert label not in screen_text(app)

    _session(do, FakeRun(change=launched))


def test_focus_zoom_and_back() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        app.frame()
        assert app.focused is None
        await pilot.press("tab", "tab", "tab")
        await pilot.pause()
        assert "▸ Step" in screen_text(app)
        await pilot.press("z")
        await pilot.pause()
        zoomed = screen_text(app)
        assert "▸ Step" in zoomed
        assert "── Process memory" not in zoomed
        assert "INPUT-BOUND" in zoomed
        await pilot.press("escape")
        await pilot.pause()
        assert "── Process memory" in screen_text(app)

    _session(do)


def test_each_number_shows_its_view_and_the_verdict_stays() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        for key, name in zip("2345671", [*NAMES[1:], NAMES[0]], strict=True):
            await pilot.press(key)
            await pilot.pause()
            text = screen_text(app)
            assert "INPUT-BOUND" in text
            assert ("[" + key in text) is (name != "overview")
            await pilot.press("z")
            await pilot.pause()
            assert "INPUT-BOUND" in screen_text(app)
            await pilot.press("escape")

    _session(do)


def test_enter_opens_the_verdict_where_nothing_else_has_the_focus() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        await pilot.press("enter")
        await pilot.pause()
        text = screen_text(app)
        assert "GPU busy %" not in text
        assert "store the images at the size they are used" in text
        await pilot.press("enter")
        await pilot.pause()
        assert "GPU busy %" in screen_text(app)

    _session(do)


class Recorded(FakeRun):
    """The fake run, that can be recorded."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.recording = LiveRecording(RunClock())
        self.recording.header = lambda _: HEADER

    @property
    def news(self) -> str:
        return self.recording.news

    def toggle_recording(self) -> None:
        self.recording.toggle(super().snapshot())

    def snapshot(self) -> Snapshot:
        return self.recording.shown_in(super().snapshot())


def test_a_key_records_and_the_header_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    picture = Recorded()

    async def session() -> None:
        app = GpuwatchApp(picture)
        async with app.run_test(size=(160, 30)) as pilot:
            await app.begun.wait()
            await pilot.press("R")
            await pilot.pause()
            header = screen_text(app).splitlines()[0]
            assert "● REC" in header
            assert "gpuwatch-train-48213-" in header
            await pilot.press("R")
            while picture.snapshot().status.recording is not None:
                await pilot.pause()
            app.frame()
            await pilot.pause()
            assert "● REC" not in screen_text(app)
            assert "recorded gpuwatch-train-48213-" in screen_text(app)

    asyncio.run(session())
    assert [path.suffix for path in tmp_path.iterdir()] == [".gpuwatch"]


def test_a_key_that_records_leaves_other_pictures_alone() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        await pilot.press("R")
        await pilot.pause()
        assert app.is_running
        assert "REC" not in screen_text(app)

    _session(do)


def test_the_header_shows_that_it_is_a_replay() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        for reported in ("12s of 30s", "over: the rest of the file is damaged"):
            run.change = lambda now, reported=reported: replace(  # type: ignore[misc]
                now, status=replace(now.status, replay=reported)
            )
            app.frame()
            await pilot.pause()
            header = screen_text(app).splitlines()[0]
            assert f"REPLAY {reported}" in header
            assert "train.py" in header

    _session(do)


def test_sources_begin_once_and_after_the_first_frame() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int], run: FakeRun) -> None:
        await pilot.pause()
        assert run.started == 1
        assert run.closed == 0

    _session(do)
