"""The options of the screen reach it: colours, characters, mouse, pace."""

import os
import re
from pathlib import Path

import pytest

from tests.processes.command_line import gpuwatch
from tests.processes.pseudo_terminal import ROOT, PseudoTerminal

RECORDING = str(ROOT / "demo" / "recordings" / "loader_workers.gpuwatch")
MOUSE_ON = b"\x1b[?1000h"


def output_of(*options: str, keys: bytes = b"") -> bytes:
    """What the screen of a replay writes to a terminal of many colours."""
    arguments = ("gpuwatch.tui.cli.main", "replay", RECORDING, *options)
    with PseudoTerminal(*arguments, size=(100, 30)) as terminal:
        terminal.read_until(lambda: terminal.shows("BOUND"), seconds=30)
        os.write(terminal.master, keys + b"q")
        assert terminal.wait() == 0
        return terminal.output


def colours(output: bytes) -> set[bytes]:
    styles = re.findall(rb"\x1b\[([0-9;]*)m", output)
    return {style for style in styles if b"38;" in style or b"48;" in style}


def test_no_color_sends_none() -> None:
    assert colours(output_of("--no-color")) == set()
    assert colours(output_of())


def test_ascii_draws_with_ascii_alone() -> None:
    assert output_of("--ascii").isascii()


@pytest.mark.parametrize("theme", ["light", "terminal"])
def test_a_theme(theme: str) -> None:
    output = output_of("--theme", theme)
    paper = b"48;5;231" in output or b"48;5;230" in output
    assert paper is (theme == "light")
    assert bool(colours(output)) is (theme == "light")


def test_the_mouse_stays_the_terminals_unless_asked_for() -> None:
    assert MOUSE_ON not in output_of()
    assert MOUSE_ON in output_of("--mouse")


@pytest.mark.parametrize("wrong", ["0", "11", "2.5", "many"])
def test_frames_have_a_range(wrong: str, tmp_path: Path) -> None:
    done = gpuwatch("attach", "1", "--fps", wrong)
    assert done.returncode == 2
    assert "is not a number from 1 to 10" in done.stderr
