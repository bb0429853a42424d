"""The text of the lines that stacks name."""

import os
from pathlib import Path

import pytest

from gpuwatch.tui import clock
from gpuwatch.tui.sources.source_text.files import APART_S, SourceLines, loaded_at


def test_the_innermost_line_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\n    total += loss.item()\n")
    lines = SourceLines([tmp_path / "missing", tmp_path])
    stack = ("<module> (train.py:1)", "train (train.py:3)", "wrap (torch/_tensor.py:12)")
    assert lines.of(stack) == "total += loss.item()"
    assert lines.of(("train (other.py:3)",)) == ""
    assert lines.of(("train (train.py:30)",)) == ""
    assert lines.of(("forward (torch/nn/modules/module.py:3)",)) == ""


def test_a_file_in_a_folder_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "net.py").write_text("x = x[mask]\n")
    assert SourceLines([tmp_path]).of(("forward (pkg/net.py:1)",)) == "x = x[mask]"
    assert SourceLines([tmp_path / "pkg"]).of(("forward (pkg/net.py:1)",)) == "x = x[mask]"


@pytest.mark.parametrize(
    "first",
    [
        "import torch\n\f\n",
        'import torch\nSEPARATORS = "\u2028\x85\x1c"\n',
        "import torch  # \v\n\n",
        "import torch\r\n\r\n",
        "import torch\r\r",
        "\ufeffimport torch\n\n",
    ],
)
def test_lines_end_where_pythons_do(tmp_path: Path, first: str) -> None:
    (tmp_path / "train.py").write_bytes(f"{first}total += loss.item()\n".encode())
    lines = SourceLines([tmp_path])
    assert len(lines.all_of("train.py")) == 3
    assert lines.of(("train (train.py:1)",)).startswith("import torch")
    assert lines.of(("train (train.py:3)",)) == "total += loss.item()"


LOADED_S = 1_700_000_000.0


@pytest.mark.parametrize(
    ("after_s", "loaded_s", "line"),
    [
        (-3600.0, LOADED_S, "total += loss.item()"),
        (APART_S, LOADED_S, "total += loss.item()"),
        (APART_S + 1, LOADED_S, ""),
        (3600.0, None, "total += loss.item()"),
    ],
)
def test_a_file_that_was_changed_since_it_was_loaded_gives_no_lines(
    tmp_path: Path, after_s: float, loaded_s: float | None, line: str
) -> None:
    for name in ("train.py", "torch/_tensor.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("total += loss.item()\n")
        os.utime(tmp_path / name, (LOADED_S, LOADED_S + after_s))
    lines = SourceLines([tmp_path], loaded=lambda: loaded_s)
    assert lines.of(("train (train.py:1)",)) == line
    assert bool(lines.all_of("torch/_tensor.py")) is bool(line)
    assert list(lines.changed) == ([] if line else ["train.py"])


def test_files_are_loaded_when_the_first_thread_beside_the_main_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begins(thread: int, at_s: float) -> None:
        folder = tmp_path / "7" / "task" / str(thread)
        folder.mkdir(parents=True)
        ticks = round(at_s * os.sysconf("SC_CLK_TCK"))
        (folder / "stat").write_text(f"{thread} (python (x)) S {'0 ' * 18}{ticks} 0 0")

    monkeypatch.setattr(clock, "now_unix", lambda: LOADED_S)
    monkeypatch.setattr(clock, "since_boot_s", lambda: 5_000.0)
    assert loaded_at(7, tmp_path) is None, "it has ended"
    begins(7, 100.0)
    assert loaded_at(7, tmp_path) is None, "the shell's start, perhaps"
    begins(9, 4_000.0)
    begins(8, 3_000.0)
    assert loaded_at(7, tmp_path) == LOADED_S - 2_000.0
