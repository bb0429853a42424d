"""The text of the lines that stacks name."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines


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
