"""`attach --notify`, `--bell` and `--desktop`: on a real process that ends."""

import sys
from pathlib import Path

import pytest

from tests.processes.command_line import started, toy
from tests.processes.monitored import LIMIT_S, until
from tests.processes.pseudo_terminal import PseudoTerminal

SCRIPT = """
import os, pathlib, sys
with pathlib.Path(__file__).with_name("reported").open("a") as file:
    file.write(os.environ["GPUWATCH_ALERT"] + " " + sys.argv[-1] + "\\n")
"""


def command(folder: Path) -> str:
    """A command that writes down its arguments."""
    (folder / "reported").touch()
    (folder / "command.py").write_text(SCRIPT)
    return f"{sys.executable} {folder / 'command.py'}"


def kinds(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "reported").read_text().splitlines()]


@pytest.mark.parametrize("face", ["--plain", "--json"])
def test_a_command_is_given_the_verdict_and_the_end(face: str, tmp_path: Path) -> None:
    with (
        toy(tmp_path) as target,
        started("attach", str(target.pid), face, "--notify", command(tmp_path)) as monitor,
    ):
        reported = tmp_path / "reported"
        assert until(lambda: f"({target.pid}): HOST-BOUND" in reported.read_text())
        target.kill()
        _, errors = monitor.communicate(timeout=LIMIT_S)
    assert monitor.returncode == 0
    # On a busy machine another verdict may come before or after that one.
    assert (set(kinds(tmp_path)[:-1]), kinds(tmp_path)[-1]) == ({"verdict"}, "ended")
    assert f"gpuwatch: toy.py ({target.pid}): " in reported.read_text().splitlines()[-1]
    assert "killed" in reported.read_text().splitlines()[-1]
    assert errors == ""


def test_a_command_that_fails_is_reported(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'raise SystemExit(7)'"
    with (
        toy(tmp_path) as target,
        started("attach", str(target.pid), "--json", "--notify", command) as monitor,
    ):
        assert monitor.stdout is not None
        monitor.stdout.readline()
        target.kill()
        _, errors = monitor.communicate(timeout=LIMIT_S)
    assert "ended with exit code 7" in errors
    assert monitor.returncode == 0


def test_the_screen_rings_and_notifies_between_its_frames(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        arguments = ("attach", str(target.pid), "--bell", "--desktop")
        with PseudoTerminal("gpuwatch.tui.cli.main", *arguments, size=(100, 30)) as terminal:
            sign = f"\a\x1b]9;gpuwatch: toy.py ({target.pid}): HOST-BOUND"
            terminal.read_until(lambda: terminal.shows(sign))


def test_lines_on_a_terminal_ring_it(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        arguments = ("attach", str(target.pid), "--plain", "--bell")
        with PseudoTerminal("gpuwatch.tui.cli.main", *arguments) as terminal:
            terminal.read_until(lambda: terminal.shows("\a"))


def test_without_a_terminal_a_bell_is_refused_in_words(tmp_path: Path) -> None:
    with (
        toy(tmp_path) as target,
        started("attach", str(target.pid), "--json", "--bell", "--duration", "1") as monitor,
    ):
        _, errors = monitor.communicate(timeout=LIMIT_S)
    assert errors == "gpuwatch: no --bell and no --desktop: standard error is no terminal\n"
