"""What the environment says about the terminal; and that asking does not load the screen."""

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from gpuwatch.tui.terminal import (
    MOST_NOTICE,
    TerminalGuard,
    charset_name,
    colour_count,
    desktop_notice,
    output_state,
    why_no_screen,
)
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


def test_ctrl_z_is_given_back_after_the_screen() -> None:
    """Textual takes it, and what follows it, and keeps both."""
    numbers = (signal.SIGTSTP, signal.SIGCONT)
    before = [signal.getsignal(number) for number in numbers]
    with TerminalGuard():
        for number in numbers:
            signal.signal(number, lambda *_: None)
    assert [signal.getsignal(number) for number in numbers] == before


def test_asking_does_not_load_the_screen() -> None:
    code = "import sys, gpuwatch.tui.terminal, gpuwatch.tui.model.provider\n"
    code += "sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    ("environ", "sign"),
    [
        ({"TERM": "xterm-256color"}, "\x1b]9;gpuwatch: a  b?\a"),
        ({"TERM": "foot"}, "\x1b]777;notify;gpuwatch;gpuwatch: a  b?\a"),
        ({"TERM": "xterm", "VTE_VERSION": "7600"}, "\x1b]777;notify;gpuwatch;gpuwatch: a  b?\a"),
        (
            {"TERM": "tmux-256color", "TMUX": "/tmp/x,1,0"},
            "\x1bPtmux;\x1b\x1b]9;gpuwatch: a  b?\a\x1b\\\a",
        ),
        ({"TERM": "screen", "STY": "1.x"}, "\x1bP\x1b]9;gpuwatch: a  b?\a\x1b\\\a"),
    ],
)
def test_a_notice_is_one_that_the_terminal_knows(environ: dict[str, str], sign: str) -> None:
    assert desktop_notice("gpuwatch: a; b?", environ) == sign


def test_a_notice_holds_no_command_for_the_terminal() -> None:
    sign = desktop_notice("\x1b]0;title\a\x9b31m\n" + "x" * 999, {"TERM": "xterm"})
    inside = sign.removeprefix("\x1b]9;").removesuffix("\a")
    assert inside.isprintable()
    assert len(inside) <= MOST_NOTICE
