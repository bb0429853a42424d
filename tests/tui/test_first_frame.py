"""What is on the terminal first, and that nothing is loaded for it that it does not show."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.screens.stylesheets import HEIGHTS, WIDTHS, classes_at
from tests.processes.pseudo_terminal import ROOT, PseudoTerminal
from tests.tui.fake_run import FakeRun

TOP_LEFT = b"\x1b[1;1H"
SIZES = [(30, 10), (50, 20), (80, 24), (100, 30), (200, 60)]


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh process has after this code."""
    code += "\nimport json, sys; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(names)


def test_a_command_waits_for_no_other() -> None:
    loaded = loaded_by("from gpuwatch.tui.cli.main import main; main(['attach', '--help'])")
    commands = {name for name in loaded if name.startswith("gpuwatch.tui.cli.")}
    assert "gpuwatch.tui.cli.attach" in commands
    assert not commands & {
        f"gpuwatch.tui.cli.{name}" for name in ("demo", "doctor", "record", "replay")
    }


def test_the_first_frame_waits_for_no_view_no_source_and_no_rule() -> None:
    loaded = loaded_by(
        "import gpuwatch.tui.cli.attach, gpuwatch.tui.session.live, gpuwatch.tui.app"
    )
    late = (
        "gpuwatch.tui.widgets.charts.sawtooth",
        "gpuwatch.tui.verdict.engine",
        "gpuwatch.tui.verdict.window",
    )
    assert not loaded & {
        *late,
        "gpuwatch.tui.sources.feed",
        "gpuwatch.tui.sources.process",
        "gpuwatch.tui.session.session",
    }
    assert not loaded & {
        "zmq",
        "pynvml",
        "gpuwatch.tui.widgets.charts.cursor",
        "gpuwatch.tui.recording.reader",
    }


def test_the_first_thing_painted_shows_what_is_watched() -> None:
    with PseudoTerminal("tests.tui.live_fake", size=(100, 30)) as terminal:
        terminal.read_until(lambda: terminal.shows("what holds most") or terminal.shows("Step "))
        first = terminal.output.split(TOP_LEFT)[1]
    assert b"train.py" in first
    assert b"INPUT-BOUND" in first
    assert b"quit" in first


@pytest.mark.parametrize("size", SIZES)
def test_the_screen_begins_at_its_size_and_is_not_styled_anew(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[bool] = []
    made: Any = GpuwatchApp.get_default_screen

    def noted(self: GpuwatchApp) -> Any:
        screen = made(self)
        reported.append(screen.classes >= classes_at(*size))
        return screen

    monkeypatch.setattr(GpuwatchApp, "get_default_screen", noted)

    async def session() -> frozenset[str]:
        app = GpuwatchApp(FakeRun())
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            return app.screen.classes

    classes = asyncio.run(session())
    assert reported == [True]
    assert classes & {name for _, name in (*WIDTHS, *HEIGHTS)} == classes_at(*size)


def test_what_can_wait_comes_after_the_first_frame_of_what_the_sources_show() -> None:
    class Noted(FakeRun):
        def snapshot(self) -> Snapshot:
            if self.started:
                reported.append("frame")
            return super().snapshot()

    reported: list[str] = []
    done = asyncio.Event()

    def settled() -> None:
        reported.append("settled")
        done.set()

    async def session() -> None:
        app = GpuwatchApp(Noted(), settled=settled, frames_s=50.0)
        async with app.run_test():
            await done.wait()

    asyncio.run(session())
    assert reported[0] == "frame"
    assert reported.count("settled") == 1
