"""Files beside the person: never over anything, and never lost without a word."""

from pathlib import Path

import pytest

from gpuwatch.tui.formats.files import export

FILES = {".txt": "report\n", ".json": "{}\n"}


def test_files_of_one_stem(tmp_path: Path) -> None:
    done = export(FILES, "gpuwatch-train-7", tmp_path)
    assert [path.name for path in done.paths] == ["gpuwatch-train-7.txt", "gpuwatch-train-7.json"]
    assert [path.read_text() for path in done.paths] == ["report\n", "{}\n"]
    assert done.why_elsewhere == ""


def test_nothing_is_overwritten_and_the_stem_stays_one(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("mine")
    done = export(FILES, "run", tmp_path)
    assert [path.name for path in done.paths] == ["run-2.txt", "run-2.json"]
    assert export(FILES, "run", tmp_path).paths[0].name == "run-3.txt"
    assert (tmp_path / "run.json").read_text() == "mine"
    assert not (tmp_path / "run.txt").exists()


def test_a_folder_that_takes_nothing_is_reported_and_the_spare_one_used(tmp_path: Path) -> None:
    # A folder that is not there: as read-only as it gets, for root as well.
    missing = tmp_path / "gone"
    done = export(FILES, "run", missing, spare=tmp_path)
    assert done.paths[0] == tmp_path / "run.txt"
    assert str(missing) in done.why_elsewhere
    assert "No such file" in done.why_elsewhere


def test_where_neither_takes_anything_it_fails(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        export(FILES, "run", tmp_path / "gone", spare=tmp_path / "gone too")


def test_half_an_export_is_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        export({".txt": "a", "/x.json": "b"}, "run", tmp_path, spare=tmp_path)
    assert list(tmp_path.iterdir()) == []
