"""The text of the lines that stacks name."""

from pathlib import Path

from tui.sources.source_lines import SourceLines
from tui.sources.stack_lines import parse


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


def test_the_main_threads_and_the_workers_stacks_carry_a_line() -> None:
    text = (
        'process 7:"python train.py";thread (7): MainThread;train (train.py:3) 5\n'
        'process 7:"python";process 9:"python";thread (9): MainThread;'
        "_worker_loop (worker.py:1);get (data.py:2) 5\n"
    )
    chunk = parse(text, 7, lambda frames: "the line")
    lines = {stack.role: stack.line for stack in chunk.stacks}
    assert lines == {"main": "the line", "worker": "the line"}
