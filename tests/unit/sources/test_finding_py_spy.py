"""Where py-spy's program is found."""

import sys
from pathlib import Path

import pytest

from gpuwatch.tui.sources.stacks import find_py_spy

TARGET_RECORD = "../../bin/py-spy,sha256=x,1\npy_spy-0.4.dist-info/RECORD,,\n"
USER_RECORD = "../../../bin/py-spy,sha256=x,1\npy_spy-0.4.dist-info/RECORD,,\n"


@pytest.mark.parametrize(
    ("site", "record", "program"),
    [
        ("target", TARGET_RECORD, "target/bin/py-spy"),
        ("user/lib/python3.12/site-packages", USER_RECORD, "user/bin/py-spy"),
    ],
    ids=["--target", "--user"],
)
def test_py_spy_is_found_where_pip_put_it_off_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str, record: str, program: str
) -> None:
    """Nine runs on an H200 went without stacks: the packages lay in a folder of `--target`."""
    about = tmp_path / site / "py_spy-0.4.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: py-spy\nVersion: 0.4\n")
    (about / "RECORD").write_text(record)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / site)])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_py_spy() is None
    there = tmp_path / program
    there.parent.mkdir(parents=True, exist_ok=True)
    there.touch(mode=0o755)
    assert find_py_spy() == str(there.resolve())
