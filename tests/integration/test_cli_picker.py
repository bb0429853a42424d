"""`gpuwatch` alone on a terminal: pick a process, watch it."""

import os
from pathlib import Path

from tests.processes.command_line import gpuwatch, toy
from tests.processes.pseudo_terminal import MAIN_SCREEN, PseudoTerminal


def test_a_run_appears_is_picked_and_watched(tmp_path: Path) -> None:
    with PseudoTerminal("gpuwatch.tui.cli.main", size=(100, 30)) as terminal:
        terminal.read_until(lambda: terminal.shows("which process?"))
        with toy(tmp_path) as target:
            # By its pid: other tests run scripts of that name beside this one.
            terminal.read_until(lambda: terminal.shows(str(target.pid)))
            os.write(terminal.master, str(target.pid).encode())
            terminal.read_until(lambda: terminal.shows("find"))
            os.write(terminal.master, b"\r")
            terminal.read_until(lambda: terminal.shows(f"pid {target.pid}"))
            os.write(terminal.master, b"q")
            assert terminal.wait() == 0
            assert target.poll() is None
        # Both screens gave the terminal back.
        assert terminal.output.count(MAIN_SCREEN) >= 2


def test_leaving_it_watches_nothing() -> None:
    for keys, words in ((b"q", ()), (b"\x03", ()), (b"q", ("attach",))):
        with PseudoTerminal("gpuwatch.tui.cli.main", *words) as terminal:
            terminal.read_until(lambda: terminal.shows("which process?"))
            os.write(terminal.master, keys)
            assert terminal.wait() == 0
            assert MAIN_SCREEN in terminal.output


def test_attach_without_a_pid_and_without_a_screen_shows_how_to_go_on() -> None:
    for words in ((), ("--once",)):
        done = gpuwatch("attach", *words)
        assert done.returncode == 2
        assert "which process?" in done.stderr
        assert "gpuwatch ls" in done.stderr
