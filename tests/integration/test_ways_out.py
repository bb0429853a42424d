"""Every way of ending gives the terminal back; a terminal that is gone ends the program."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.processes.pseudo_terminal import MAIN_SCREEN, ROOT, PseudoTerminal

PROGRAM = "tests.tui.live_fake"


def _until_drawn(terminal: PseudoTerminal) -> None:
    terminal.read_until(lambda: terminal.shows("INPUT-BOUND"))


@pytest.mark.parametrize(
    ("name", "code"),
    [("SIGTERM", 143), ("SIGHUP", 129), ("SIGQUIT", 131), ("SIGINT", 130)],
)
def test_signals(name: str, code: int) -> None:
    with PseudoTerminal(PROGRAM) as terminal:
        _until_drawn(terminal)
        terminal.process.send_signal(getattr(signal, name))
        assert terminal.wait() == code
        assert terminal.is_restored()
        assert terminal.shows("closed")


@pytest.mark.parametrize("keys", [b"q", b"\x03"])
def test_quit_keys(keys: bytes) -> None:
    with PseudoTerminal(PROGRAM) as terminal:
        _until_drawn(terminal)
        os.write(terminal.master, keys)
        assert terminal.wait() == 0
        assert terminal.is_restored()
        assert terminal.shows("closed")
        terminal.read_until(lambda: "decode on the GPU" in _left(terminal))
        left = _left(terminal)
    text = " ".join(left.split())  # its lines are broken between words
    assert "INPUT-BOUND critical · 92% sure" in text
    assert "data wait is 57% of every step" in text
    assert "num_workers 4 → 10 (16 cores, 11 idle), then decode on the GPU" in text


def _left(terminal: PseudoTerminal) -> str:
    """What stands in the terminal after the screen."""
    return terminal.output[terminal.output.rfind(MAIN_SCREEN) :].decode()


@pytest.mark.parametrize("controlling", [True, False])
def test_a_lost_terminal_ends_it(controlling: bool) -> None:
    # Without a controlling terminal no SIGHUP comes: the look before each frame must see it.
    started = time.monotonic()
    with PseudoTerminal(PROGRAM, controlling=controlling) as terminal:
        _until_drawn(terminal)
        began = time.monotonic()
        terminal.hang_up()
        assert terminal.process.wait(timeout=60) == 129
        # On a machine that is busy with other things starting took long, too.
        assert time.monotonic() - began < max(1.0, 2 * (began - started))


def test_a_blocked_screen_is_cut_off_and_the_terminal_restored() -> None:
    with PseudoTerminal(PROGRAM, "hang") as terminal:
        _until_drawn(terminal)
        began = time.monotonic()
        while time.monotonic() - began < 2.0:  # until the loop is inside its sleep
            terminal.read()
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait() == 143
        assert terminal.is_restored()


def test_a_crash_gives_the_terminal_back_and_shows_where_the_report_is(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from tests.tui.live_fake import LiveFake\n"
        "from gpuwatch.tui.app import run_screen\n"
        "import gpuwatch.tui.cli.main as cli\n"
        "cli.parser = lambda _: Parser()\n"
        "class Parser:\n"
        "    def parse_known_args(self, _): return self, []\n"
        "    def run(self, _): return run_screen(LiveFake('crash'))\n"
        "sys.exit(cli.main())\n"
    )
    (tmp_path / "crashing.py").write_text(code)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environ = {"PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    with PseudoTerminal("crashing", environ=environ, size=(200, 30)) as terminal:
        assert terminal.wait(20) == 1
        assert terminal.is_restored()
        assert terminal.shows("closed")
        printed = terminal.output[terminal.output.rfind(MAIN_SCREEN) :].decode()
    lines = [line for line in printed.splitlines() if "gpuwatch" in line or "report" in line]
    assert "gpuwatch: the screen broke: ZeroDivisionError: a frame failed" in lines[0]
    assert "This is a mistake in gpuwatch; the training goes on" in lines[1]
    (report,) = tmp_path.glob("gpuwatch-crash-*.txt")
    assert lines[2].strip() == f"Please report it with this file: {report}"
    assert len(lines) == 3
    assert "Traceback" not in printed
    written = report.read_text()
    assert 'raise ZeroDivisionError("a frame' in written
    assert "terminal 200x30\nTERM=xterm-256color" in written
    assert "textual " in written


def test_ctrl_z_stops_it_and_fg_draws_everything_again() -> None:
    with PseudoTerminal(PROGRAM, size=(100, 30)) as terminal:
        _until_drawn(terminal)
        os.write(terminal.master, b"\x1a")
        # What it wrote last may lie in the terminal yet.
        terminal.read_until(lambda: _state(terminal) == "T" and MAIN_SCREEN in terminal.output)
        stopped = len(terminal.output)
        terminal.process.send_signal(signal.SIGCONT)
        # Header, verdict, chart and footer: all rows, not those alone that change.
        terminal.read_until(lambda: _rows_since(terminal, stopped) == REPAINTED)
        os.write(terminal.master, b"q")
        assert terminal.wait() == 0
        assert terminal.is_restored()


def test_a_terminal_that_is_as_large_as_before_is_drawn_whole_again() -> None:
    # It was smaller in between: what did not change since is gone from it.
    with PseudoTerminal(PROGRAM, size=(100, 30)) as terminal:
        terminal.read_until(lambda: terminal.shows("checkpoint"))  # its last row
        drawn = len(terminal.output)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.read_until(lambda: _rows_since(terminal, drawn) == REPAINTED)


REPAINTED = ("gpuwatch", "INPUT-BOUND", "GPU busy %", "NEXT", "quit")


def _rows_since(terminal: PseudoTerminal, at: int) -> tuple[str, ...]:
    """Which of the words were drawn since then."""
    drawn = terminal.output[at:].decode(errors="replace")
    return tuple(word for word in REPAINTED if word in drawn)


def _state(terminal: PseudoTerminal) -> str:
    with open(f"/proc/{terminal.process.pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def test_a_terminal_that_nobody_reads_is_skipped_and_can_be_left() -> None:
    with PseudoTerminal(PROGRAM, size=(200, 60)) as terminal:
        _until_drawn(terminal)
        time.sleep(2.0)  # the link stalls: this is what is tested
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.process.wait(timeout=5) == 143


def test_the_budget_of_a_terminal() -> None:
    """At 100x30 and 4 frames a second: 20 KB/s and a small part of a core (issue: 5 %)."""
    with PseudoTerminal(PROGRAM, size=(100, 30)) as terminal:
        terminal.read_until(lambda: terminal.shows("checkpoint"))  # the first view's last row
        began, before, cpu = time.monotonic(), len(terminal.output), _cpu_s(terminal)
        while time.monotonic() - began < 3.0:
            terminal.read()
        seconds = time.monotonic() - began
        assert 1_000 < (len(terminal.output) - before) / seconds < 20_000
        assert (_cpu_s(terminal) - cpu) / seconds < 0.25  # generous: the machine may be busy


def _cpu_s(terminal: PseudoTerminal) -> float:
    with open(f"/proc/{terminal.process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("environ", "allowed"),
    [
        ({"NO_COLOR": "1"}, r"(|0|1|7|39|49)"),
        ({"TERM": "xterm"}, r"(|0|1|7|39|49|3[0-7]|4[0-7]|9[0-7]|10[0-7])"),
    ],
)
def test_few_colours(environ: dict[str, str], allowed: str) -> None:
    with PseudoTerminal(PROGRAM, environ=environ) as terminal:
        _until_drawn(terminal)
        os.write(terminal.master, b" ")
        terminal.read_until(lambda: terminal.shows("PAUSED"))
        styles = re.findall(r"\x1b\[([0-9;]*)m", terminal.output.decode(errors="replace"))
        codes = {code for style in styles for code in style.split(";")}
        assert {code for code in codes if not re.fullmatch(allowed, code)} == set()


def test_without_a_terminal_it_reports_that() -> None:
    with PseudoTerminal(PROGRAM, environ={"TERM": "dumb"}) as terminal:
        assert terminal.wait(15) == 1
        assert terminal.shows("NoScreenError")
        assert terminal.shows("closed")
