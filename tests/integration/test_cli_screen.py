"""`gpuwatch attach PID` and `demo` on a terminal: the screen opens; leaving it leaves the run."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.measuring.uses import waited_for_core_s
from tests.processes.command_line import ROOT, TOY, toy, wait_until_ended
from tests.processes.demo_clone import clone_with
from tests.processes.pseudo_terminal import MAIN_SCREEN, PseudoTerminal


def test_the_screen_is_live_within_a_moment_and_q_leaves_the_run(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        began = time.monotonic()
        with PseudoTerminal(
            "gpuwatch.tui.cli.main", "attach", str(target.pid), size=(100, 30)
        ) as terminal:
            terminal.read_until(lambda: terminal.shows("toy.py"))
            opened_s = time.monotonic() - began - waited_for_core_s(terminal.process.pid)
            terminal.read_until(lambda: terminal.shows("HOST-BOUND"), seconds=20)
            os.write(terminal.master, b"q")
            assert terminal.wait() == 0
            assert MAIN_SCREEN in terminal.output
        assert target.poll() is None
    assert opened_s < 2, "1 s, and never the time in which others had the cores"


def test_a_terminal_that_cannot_place_text_gets_lines(tmp_path: Path) -> None:
    environ = {"TERM": "dumb"}
    with toy(tmp_path) as target:
        arguments = ("attach", str(target.pid), "--duration", "2")
        with PseudoTerminal("gpuwatch.tui.cli.main", *arguments, environ=environ) as terminal:
            terminal.read_until(lambda: terminal.shows("gpuwatch   toy.py"))
            assert terminal.wait() == 0
            assert b"\x1b" not in terminal.output


@pytest.mark.slow
@pytest.mark.parametrize("leave", ["q", "SIGTERM", "SIGKILL"])
def test_a_demo_on_a_terminal_ends_its_training(leave: str, tmp_path: Path) -> None:
    """A real one once; what ends it does not depend on what it trains."""
    words, place = ["demo", "compute"], ROOT
    if leave != "q":
        words, place = ["demo"], clone_with(tmp_path, TOY.format(steps=100_000))
    with PseudoTerminal(
        "gpuwatch.tui.cli.main",
        *words,
        size=(100, 30),
        cwd=place,
        environ={"PYTHONPATH": str(place)},
    ) as terminal:
        # What it says depends on who else wants the cores; that it runs does not.
        terminal.read_until(lambda: terminal.shows("steps/s"), seconds=40)
        pid = int(re.findall(rb"pid (\d+)", terminal.output)[0])
        if leave == "q":
            os.write(terminal.master, b"q")
        else:
            os.kill(terminal.process.pid, getattr(signal, leave))
        assert terminal.wait() == {"q": 0, "SIGTERM": 143, "SIGKILL": -9}[leave]
    wait_until_ended(pid)
