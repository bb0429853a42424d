"""`gpuwatch run --attach`: the program in the foreground, the screen while somebody looks."""

import os
import re
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests.processes.command_line import ROOT, wait_until_ended
from tests.processes.pseudo_terminal import MAIN_SCREEN, PseudoTerminal

TRAINS = """
import os, select, sys, time
print("pid", os.getpid(), sys.stdin.isatty(), sys.stdout.isatty(), os.get_terminal_size())
answer = input("go? ")
import probe
probe.install()
print("answered", answer, flush=True)
number = 0
while True:
    number += 1
    with probe.phase("load"):
        time.sleep(0.02)
    probe.step()
    print("step", number, flush=True)
    if select.select([sys.stdin], [], [], 0)[0]:
        print("line", sys.stdin.readline().strip(), flush=True)
        sys.exit(7)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "trains.py"
    path.write_text(TRAINS)
    return str(path)


def screen(script: str) -> PseudoTerminal:
    words = ("gpuwatch.tui.cli.main", "run", "--attach", script)
    return PseudoTerminal(*words, size=(100, 30), environ={"PYTHONPATH": str(ROOT)})


def pid_in(output: bytes) -> int:
    return int(output.split(b"pid ")[1].split()[0])


def steps_in(output: bytes) -> list[int]:
    return [int(number) for number in re.findall(rb"step (\d+)\r", output)]


def written(output: bytes) -> bytes:
    """What the program wrote: the screen may have come in the middle of a line."""
    shown, left = output.index(b"\x1b[?1049h"), output.rindex(MAIN_SCREEN)
    return output[:shown] + re.sub(rb"\x1b\[[0-9;?<>=]*[A-Za-z]", b"", output[left:])


def leave(terminal: PseudoTerminal) -> int:
    """Leave the screen by its key; returns where in the output that happened."""
    os.write(terminal.master, b"q")
    terminal.read_until(lambda: MAIN_SCREEN in terminal.output)
    left = terminal.output.rindex(MAIN_SCREEN)
    terminal.read_until(lambda: len(steps_in(terminal.output[left:])) > 5)
    return left


def begin(terminal: PseudoTerminal) -> int:
    """Answer its question; the screen opens. Returns the program's pid."""
    terminal.read_until(lambda: terminal.shows("go? "))
    assert terminal.shows("True True os.terminal_size(columns=100, lines=30)")
    os.write(terminal.master, b"yes\r")
    terminal.read_until(lambda: terminal.shows("trains.py") and terminal.shows("\x1b[?1049h"))
    terminal.read_until(lambda: terminal.shows("steps"))
    return pid_in(terminal.output)


def test_leaving_the_screen_leaves_the_program_in_the_foreground(script: str) -> None:
    """And what it wrote meanwhile is not lost."""
    with screen(script) as terminal:
        begin(terminal)
        left = leave(terminal)
        kept = steps_in(terminal.output[left:])
        terminal.read_until(lambda: steps_in(terminal.output)[-1] > kept[-1] + 5)
        steps = steps_in(written(terminal.output))
        assert steps == list(range(1, len(steps) + 1)), terminal.output
        os.write(terminal.master, b"enough\r")
        assert terminal.wait() == 7
        assert terminal.shows("line enough")


def test_ctrl_c_reaches_the_program_once_the_screen_is_left(script: str) -> None:
    with screen(script) as terminal:
        begin(terminal)
        leave(terminal)
        os.write(terminal.master, b"\x03")
        assert terminal.wait() == 128 + signal.SIGINT
        assert terminal.shows("KeyboardInterrupt")


@pytest.mark.parametrize("shown", [True, False])
def test_a_signal_for_us_is_for_the_program(script: str, shown: bool) -> None:
    with screen(script) as terminal:
        if shown:
            pid = begin(terminal)
        else:
            terminal.read_until(lambda: terminal.shows("go? "))
            pid = pid_in(terminal.output)
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.wait() == 128 + signal.SIGTERM
        wait_until_ended(pid)


def test_a_program_that_ends_under_the_screen_has_its_last_words_after_it(script: str) -> None:
    with screen(script) as terminal:
        pid = begin(terminal)
        os.kill(pid, signal.SIGKILL)
        terminal.read_until(lambda: terminal.shows("ended") or terminal.shows("crashed"))
        os.write(terminal.master, b"q")
        assert terminal.wait() == 128 + signal.SIGKILL
        steps = steps_in(written(terminal.output))
        assert steps == list(range(1, len(steps) + 1)), terminal.output
        assert steps_in(terminal.output[terminal.output.rindex(MAIN_SCREEN) :])


def test_a_program_that_ends_before_its_probe_is_just_run(tmp_path: Path) -> None:
    path = tmp_path / "ends.py"
    path.write_text("import sys\nprint('over')\nsys.exit(3)\n")
    with screen(str(path)) as terminal:
        assert terminal.wait() == 3
        # Before our terminal is the program's, and after, it makes two returns of one: nobody sees.
        assert re.search(rb"over\r+\n$", terminal.output), terminal.output
        assert b"\x1b[?1049h" not in terminal.output


def takes_every_key(terminal: PseudoTerminal) -> bool:
    """The terminal makes no signals of keys any more."""
    return not termios.tcgetattr(terminal.master)[3] & termios.ISIG


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("seen", [False, True])
def test_ctrl_z_stops_both_for_the_shell_and_both_go_on(script: str, seen: bool) -> None:
    """Before there was a screen, and after it was left."""
    job = (sys.executable, "-m", "gpuwatch.tui.cli.main", "run", "--attach", script)
    shell = ("tests.integration.small_shell", *job)
    environ = {"PYTHONPATH": str(ROOT)}
    with PseudoTerminal(*shell, size=(100, 30), environ=environ) as terminal:
        if seen:
            begin(terminal)
            leave(terminal)
            terminal.read_until(lambda: takes_every_key(terminal))
        else:
            terminal.read_until(lambda: terminal.shows("go? "))
        os.write(terminal.master, b"\x1a")
        terminal.read_until(lambda: terminal.shows("stopped "))
        terminal.read_until(lambda: state_of(pid_in(terminal.output)) == "T")
        os.write(terminal.master, b"fg\n")
        terminal.read_until(lambda: state_of(pid_in(terminal.output)) != "T")
        if not seen:
            begin(terminal)
            leave(terminal)
        os.write(terminal.master, b"enough\r")
        assert terminal.wait() == 7
