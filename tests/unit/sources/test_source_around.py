"""Source lines, from wherever the target's files are."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.sources.source_text.files import AROUND, package_folders, read_around
from tests.tui.fake_run import HELLO, FakeRun


def picture(tmp_path: Path, **fields: object) -> Snapshot:
    hello = structs.replace(
        HELLO,
        host=socket.gethostname(),
        cwd=str(tmp_path),
        argv=["job/train.py"],
        executable=sys.executable,
    )
    return replace(FakeRun().snapshot(), hello=structs.replace(hello, **fields))


def test_the_lines_around_a_frame_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    lines = [f"line {number}" for number in range(1, 201)]
    (tmp_path / "job" / "train.py").write_text("\n".join(lines))
    reported = read_around("train (train.py:100)", picture(tmp_path))
    assert reported.path == str(tmp_path / "job" / "train.py")
    assert reported.line == 100
    assert reported.first == 100 - AROUND
    assert reported.lines[reported.line - reported.first] == "line 100"
    assert reported.lines[-1] == f"line {100 + AROUND}"


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\f\ndef train():\n")
    assert read_around("train (train.py:3)", picture(tmp_path)).lines[2] == "def train():"


def test_packages_and_the_standard_library_are_found_by_the_targets_python(tmp_path: Path) -> None:
    reported = read_around("wait (threading.py:3)", picture(tmp_path))
    assert os.path.basename(reported.path) == "threading.py"
    assert reported.lines
    assert read_around("f (textual/app.py:9)", picture(tmp_path)).lines


def test_why_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("one line\n")
    run = picture(tmp_path)
    assert read_around("f (<string>:3)", run).why_not == "this frame is in no file"
    assert "has 1 lines by now" in read_around("f (train.py:30)", run).why_not
    assert "no lost.py" in read_around("f (lost.py:3)", run).why_not
    elsewhere = picture(tmp_path, host="node7")
    assert read_around("f (train.py:1)", elsewhere).why_not == "its files are on node7"
    assert "without a probe" in read_around("f (train.py:1)", replace(run, hello=None)).why_not


@pytest.mark.parametrize("executable", ["/python", "/", ""])
def test_a_python_in_no_folder_has_no_packages(executable: str) -> None:
    assert package_folders(structs.replace(HELLO, executable=executable)) == []
