"""`gpuwatch compare` and `gpuwatch report FILE` over recordings from an H200."""

import json
import os
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from gpuwatch.tui.cli import compare, report
from gpuwatch.tui.cli.main import main
from gpuwatch.tui.compare.comparison import Side
from tests.unit.compare.runs import RECORDINGS

FP32, BF16 = (str(RECORDINGS / f"{name}.gpuwatch") for name in ("precision_fp32", "gpt_bf16"))

_read = compare._side
_read_once = cache(_read)


@pytest.fixture(autouse=True)
def _the_two_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def side(path: Path) -> Side:
        return _read_once(path) if str(path) in (FP32, BF16) else _read(path)

    monkeypatch.setattr(compare, "_side", side)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("step_ms>+5%", 6),
        ("step_ms>+90%", 0),
        ("gpu_data_ms>+5%", 0),  # a microsecond: too little to be shown
        ("gpu_data_ms>1", 0),
        ("nonsense", 2),
    ],
)
def test_the_exit_code_is_what_ci_reads(condition: str, code: int) -> None:
    assert main(["compare", FP32, BF16, "--fail-if", condition]) == code


def test_the_exit_code_of_what_one_side_does_not_have() -> None:
    unseen = str(RECORDINGS / "checkpoint_often.gpuwatch")
    assert main(["compare", FP32, unseen, "--fail-if", "samples_s<-5%"]) == 5


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", FP32, BF16, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["a"]["verdict"] == "compute/precision"
    assert record["figures"]["step_ms"]["found"] == "worse"
    low, high = record["figures"]["step_ms"]["change_interval"]
    assert low < record["figures"]["step_ms"]["change"] < high


def test_a_folder_is_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        (tmp_path / f"{number}.gpuwatch").write_bytes(Path(FP32).read_bytes())
    assert main(["compare", str(tmp_path), BF16, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"]["runs"] == 2


def test_an_empty_folder_and_a_file_of_another_kind_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    assert main(["compare", str(tmp_path), BF16]) == 2
    assert main(["compare", str(other), BF16]) == 2
    assert other.read_text() == "mine"


def test_a_page_that_cannot_be_written_is_refused_before_a_run_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_: object) -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(compare, "_side", unread)
    monkeypatch.setattr(report, "_of_file", unread)
    monkeypatch.setattr(report, "_of_process", unread)
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    for path, why in (
        (other, "is no page of HTML"),
        (tmp_path / "none" / "page.html", "is not a directory"),
        (tmp_path, "cannot be written"),
    ):
        for arguments in (["compare", FP32, BF16], ["report", FP32], ["report", str(os.getpid())]):
            assert main([*arguments, "-o", str(path)]) in (1, 2)
            assert why in capsys.readouterr().err
    assert other.read_text() == "mine"


def test_pages_are_written_for_their_owner_alone(tmp_path: Path) -> None:
    for arguments in (["compare", FP32, BF16], ["report", FP32]):
        page = tmp_path / f"{arguments[0]}.html"
        for _ in range(2):
            assert main([*arguments, "-o", str(page)]) == 0
        assert page.stat().st_mode & 0o777 == 0o600
        assert page.read_text().startswith("<!doctype html>")


def test_a_report_of_a_recording_is_that_of_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", FP32]) == 0
    reported = capsys.readouterr().out
    assert main(["replay", FP32, "--once"]) == 0
    assert reported.splitlines()[:5] == capsys.readouterr().out.splitlines()[:5]
