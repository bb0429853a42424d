"""The catalogue of recordings that come along."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.cli import demo_runs
from gpuwatch.tui.cli.demo_runs import RecordedCatalogue, read_recorded
from gpuwatch.tui.cli.main import main
from tests.unit.recording.files import recorded

ROW = {
    "name": "loader_workers",
    "title": "too few workers",
    "about": "The loader cannot keep up.",
    "file": "loader_workers.gpuwatch",
    "kind": "input",
    "sub": "workers",
    "gpu": "NVIDIA H200",
    "torch": "2.13.0",
    "recorded": "2026-11-21",
}


def folder_with(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "catalogue.json").write_text(json.dumps(rows))
    (folder / "loader_workers.gpuwatch").write_bytes(recorded([]))
    return folder


def test_a_catalogue_is_read(tmp_path: Path) -> None:
    catalogue = read_recorded(folder_with(tmp_path, ROW))
    assert [demo.name for demo in catalogue.demos] == ["loader_workers"]
    assert catalogue.named(None) == catalogue.named("loader_workers") == catalogue.demos[0]
    assert catalogue.named("else") is None
    assert str(catalogue.demos[0].recorded) == "2026-11-21"


def test_no_catalogue_is_no_recordings(tmp_path: Path) -> None:
    assert read_recorded(tmp_path) == RecordedCatalogue(tmp_path, ())


def test_the_one_that_comes_along_is_in_order() -> None:
    read_recorded()


@pytest.mark.parametrize(
    "change",
    [
        {"file": "missing.gpuwatch"},
        {"file": "../loader_workers.gpuwatch"},
        {"file": "catalogue.json"},
        {"recorded": "yesterday"},
        {"kind": None},
    ],
)
def test_a_row_that_cannot_be_right_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no recording|Expected|Invalid"):
        read_recorded(folder_with(tmp_path, {**ROW, **change}))


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="loader_workers twice"):
        read_recorded(folder_with(tmp_path, ROW, ROW))


def test_the_command_shows_that_it_is_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = read_recorded(folder_with(tmp_path, ROW))
    monkeypatch.setattr(demo_runs, "read_recorded", lambda: catalogue)
    assert main(["demo", "--gpu", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[1].split()[:3] == ["loader_workers", "input/workers", "H200"]
    assert main(["demo", "--gpu"]) == 0
    text = capsys.readouterr()
    assert "A recording from an NVIDIA H200 with torch 2.13.0, 2026-11-21" in text.err
    assert "replay of loader_workers.gpuwatch" in text.out
    assert main(["demo", "--gpu", "nonsense"]) == 2
    assert "Demos: loader_workers" in capsys.readouterr().err


def test_without_recordings_it_shows_what_else_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_runs, "read_recorded", lambda: RecordedCatalogue(tmp_path, ()))
    assert main(["demo", "--gpu"]) == 5
    assert len(capsys.readouterr().err.splitlines()) == 3
