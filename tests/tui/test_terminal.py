"""What the environment says about the terminal; and that asking does not load the screen."""

import os
import pty
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from gpuwatch.tui.terminal import charset_name, colour_count, output_state, why_no_screen
from tests.processes.pseudo_terminal import ROOT


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "unicode"),  # a container without a locale: most terminals are UTF-8
        ({"LANG": "en_US.UTF-8"}, "unicode"),
        ({"LANG": "C.utf8"}, "unicode"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, "ascii"),
        ({"LANG": "de_DE.ISO-8859-1"}, "ascii"),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, "console"),
    ],
)
def test_charset(environ: dict[str, str], name: str) -> None:
    assert charset_name(environ) == name


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({"TERM": "xterm-256color"}, "many"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "many"),
        ({"TERM": "screen"}, "16"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "many"),
    ],
)
def test_colours(environ: dict[str, str], count: str) -> None:
    assert colour_count(environ) == count


def test_no_terminal_is_a_reason() -> None:
    code = (
        "import sys, gpuwatch.tui.terminal as t\n"
        "sys.exit(0 if t.why_no_screen() == 'no terminal' else 1)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.DEVNULL)
    assert run.returncode == 0
    assert why_no_screen({"TERM": "dumb"}) is not None


def test_output_states() -> None:
    master, slave = pty.openpty()
    assert output_state(slave) == "ready"
    os.set_blocking(slave, False)
    deadline = time.monotonic() + 5
    # The kernel may move what was written on, and take some more, a few times.
    while output_state(slave) == "ready" and time.monotonic() < deadline:
        with suppress(BlockingIOError):
            os.write(slave, b"x" * 4_096)
    assert output_state(slave) == "full"
    os.close(master)
    assert output_state(slave) == "gone"
    os.close(slave)


def test_asking_does_not_load_the_screen() -> None:
    code = "import sys, gpuwatch.tui.terminal, gpuwatch.tui.model.provider\n"
    code += "sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
