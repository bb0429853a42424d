"""What a person takes along: files by `e`, the verdict by `y`, colours by `T`."""

import asyncio
import json
import xml.etree.ElementTree as ET
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.formats.files import Exported
from gpuwatch.tui.screens.export import cells_of, copy_verdict, exported_words
from gpuwatch.tui.terminal import THEMES
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import screen_text
from tests.unit.faces.strict_schema import strict

SVG = "{http://www.w3.org/2000/svg}"
Do = Callable[[GpuwatchApp, Pilot[int]], Awaitable[None]]


def session(do: Do, size: tuple[int, int] = (100, 30), **options: Any) -> None:
    async def play() -> None:
        app = GpuwatchApp(FakeRun(), **options)
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await do(app, pilot)

    asyncio.run(play())


def test_a_key_writes_report_json_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows: list[str] = []
    notices: list[str] = []

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        rows.extend(screen_text(app).splitlines())
        await pilot.press("e")
        await pilot.press("e")
        notices.extend(notice.message for notice in app._notifications)

    session(do)
    paths = sorted(path.name for path in tmp_path.iterdir())
    stem = paths[0].removesuffix("-2.json")
    assert stem.startswith("gpuwatch-train-48213-20")
    ends = ("-2.json", "-2.svg", "-2.txt", ".json", ".svg", ".txt")
    assert paths == [stem + end for end in ends]
    (notice,) = notices
    assert notice.startswith("wrote ")
    assert notice.endswith(f"/{stem}-2 .txt .json .svg")
    report = (tmp_path / f"{stem}.txt").read_text()
    assert report.startswith("gpuwatch   train.py   pid 48213")
    assert "INPUT-BOUND" in report
    written = json.loads((tmp_path / f"{stem}.json").read_text())
    jsonschema.Draft202012Validator(strict()).validate(written)
    assert written["verdict"]["kind"] == "input"
    assert_pictured((tmp_path / f"{stem}.svg").read_text(), rows)


def test_a_notice_has_the_whole_name_and_as_much_of_the_folder_as_fits() -> None:
    folder = Path("/home/ana/experiments/resnet/runs")
    stem = "gpuwatch-train-48213-20261121-140301"
    several = Exported(tuple(folder / f"{stem}{end}" for end in (".txt", ".json", ".svg")))
    alone = Exported((folder / f"{stem}.stacks.txt",))
    assert exported_words(several, 198) == f"wrote {folder}/{stem} .txt .json .svg"
    assert exported_words(several, 78) == f"wrote …iments/resnet/runs/{stem} .txt .json .svg"
    assert exported_words(several, 60) == f"wrote {stem} .txt .json .svg"
    assert exported_words(alone, 198) == f"wrote {folder}/{stem}.stacks.txt"
    assert all(len(exported_words(several, room)) <= room for room in range(58, 120))


def assert_pictured(svg: str, rows: list[str]) -> None:
    """It is XML, shows every row in words, and has each row's letters in their cells."""
    root = ET.fromstring(svg)
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert description.text is not None
    assert [line.rstrip() for line in description.text.splitlines()][: len(rows)] == rows
    drawn = [(text.attrib, text.text or "") for text in root.iter(f"{SVG}text")]
    for attributes, text in drawn:
        row = rows[int(float(attributes["y"]) // 16)]
        at = round(float(attributes["x"]) / 8)
        assert row[at : at + len(text)] == text
    letters = {character for row in rows for character in row if character.isalnum()}
    assert letters == {character for _, text in drawn for character in text if character.isalnum()}


def test_where_nothing_can_be_written_it_goes_elsewhere_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwatch.tui.screens.export.HERE", tmp_path / "gone")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shown: list[str] = []

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await pilot.press("e")
        shown.extend(notice.message for notice in app._notifications)

    session(do)
    assert shown[0].startswith(f"wrote {tmp_path}/gpuwatch-train-48213-")
    assert "No such file or directory" in shown[0]
    assert len(list(tmp_path.glob("*.svg"))) == 1


def test_the_verdict_goes_to_the_clipboard_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STY", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        await pilot.press("y")
        assert app.clipboard.startswith("INPUT-BOUND   critical · 92% sure")
        assert " NEXT num_workers 4 → 10" in " ".join(app.clipboard.split())
        assert "verdict copied" in next(iter(app._notifications)).message

    session(do)


def test_without_a_clipboard_the_verdict_goes_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "linux")
    monkeypatch.chdir(tmp_path)

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        shown = copy_verdict(app, FakeRun().snapshot())
        assert shown.startswith("no clipboard in this terminal: wrote ")
        assert app.clipboard == ""

    session(do)
    (path,) = tmp_path.iterdir()
    assert path.read_text().startswith("INPUT-BOUND")


def test_the_key_changes_the_colours_and_nothing_else() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        before = screen_text(app)
        grounds = [cells_of(app).background]
        for _ in THEMES:
            await pilot.press("T")
            app.clear_notifications()
            await pilot.pause()
            grounds.append(cells_of(app).background)
            assert screen_text(app) == before
        assert grounds[0] == grounds[-1]
        assert len(set(grounds)) == len(THEMES)

    session(do)


@pytest.mark.parametrize("theme", THEMES)
def test_a_theme_reaches_every_screen(theme: str) -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        main = cells_of(app)
        await pilot.press("question_mark")
        await pilot.pause()
        page = cells_of(app).rows[-1]
        assert {piece.ink.background for piece in page} == {main.background}

    session(do, theme=theme)


def test_with_few_colours_there_is_nothing_to_choose() -> None:
    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        before = cells_of(app).background
        await pilot.press("T")
        app.clear_notifications()
        await pilot.pause()
        assert cells_of(app).background == before

    session(do, colours="16")


def test_without_the_keyboard_a_frame_comes_once_a_second() -> None:
    drawn: list[int] = []

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        app.frame = lambda: drawn.append(1)  # type: ignore[method-assign]
        for focused, frames in ((True, 8), (False, 2), (True, 8)):
            app.app_focus = focused
            drawn.clear()
            for _ in range(8):
                app._tick()
            assert len(drawn) == frames

    session(do, frames_s=4.0)
