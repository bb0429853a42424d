"""A person's command, run for each notice."""

import os
import sys
from pathlib import Path

import pytest

from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.launch import notice
from gpuwatch.tui.launch.notice import MOST_WAITING, NoticeCommand, words_of
from tests.processes.command_line import is_running
from tests.processes.monitored import until

NASTY = "gpuwatch: $(touch /tmp/pwned) `id`; rm -rf ~ \"'\x1b[31m\n\0 train.py"


def script(folder: Path, text: str) -> list[str]:
    """A Python program in place of a person's command; {folder} is this folder."""
    path = folder / "tell.py"
    path.write_text(text.replace("{folder}", repr(str(folder))))
    return [sys.executable, str(path)]


PRINTS = """
import os, pathlib, sys
calls = pathlib.Path({folder}) / "calls"
facts = {name: value for name, value in os.environ.items() if name.startswith("GPUWATCH_")}
with calls.open("a") as file:
    file.write(repr((sys.argv[1:], facts.get("GPUWATCH_ALERT"))) + "\\n")
"""


def reported(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_what_happened_is_one_argument_and_the_environment(tmp_path: Path) -> None:
    lines: list[str] = []
    command = NoticeCommand([*script(tmp_path, PRINTS), "--to", "me"], lines.append)
    command.send("gpuwatch: train.py: STALLED", {"GPUWATCH_ALERT": "stalled"})
    command.close()
    assert reported(tmp_path) == ["(['--to', 'me', 'gpuwatch: train.py: STALLED'], 'stalled')"]
    assert lines == []


def test_no_shell_and_no_control_character_reads_what_a_process_calls_itself(
    tmp_path: Path,
) -> None:
    command = NoticeCommand(script(tmp_path, PRINTS), print)
    command.send(NASTY, {"GPUWATCH_ALERT": NASTY})
    command.close()
    shown = NASTY.replace("\x1b", "?").replace("\n", "?").replace("\0", "?")
    assert reported(tmp_path) == [repr(([shown], shown))]
    assert not Path("/tmp/pwned").exists()


def test_a_command_that_fails_is_reported(tmp_path: Path) -> None:
    lines: list[str] = []
    command = NoticeCommand(script(tmp_path, "raise SystemExit(3)"), lines.append)
    command.send("x", {})
    command.close()
    missing = NoticeCommand([str(tmp_path / "gone")], lines.append)
    missing.send("x", {})
    missing.close()
    assert lines == [
        f"--notify {sys.executable}: ended with exit code 3",
        f"--notify {tmp_path / 'gone'}: cannot be run: No such file or directory",
    ]


HANGS = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
(pathlib.Path({folder}) / "pids").write_text(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""


def pids(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "pids").read_text().split()]


def test_a_command_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notice, "COMMAND_S", 1.0)
    lines: list[str] = []
    command = NoticeCommand(script(tmp_path, HANGS), lines.append)
    command.send("x", {})
    assert until(lambda: lines) == [f"--notify {sys.executable}: was ended after 1 s"]
    assert until(lambda: not any(map(is_running, pids(tmp_path))))
    command.close()


def test_the_end_of_the_monitor_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notice, "LAST_S", 0.2)
    command = NoticeCommand(script(tmp_path, HANGS), lambda line: None)
    command.send("x", {})
    assert until(lambda: len(pids(tmp_path)) == 2)
    command.close()
    assert until(lambda: not any(map(is_running, pids(tmp_path))))


def test_notices_do_not_pile_up(tmp_path: Path) -> None:
    waits = "import pathlib, time\nwhile not (pathlib.Path({folder}) / 'go').exists():\n"
    waits += "    time.sleep(0.01)\n" + PRINTS
    lines: list[str] = []
    command = NoticeCommand(script(tmp_path, waits), lines.append)
    command.send("first", {})
    assert until(lambda: command._running is not None)
    for number in range(MOST_WAITING + 5):
        command.send(str(number), {})
    (tmp_path / "go").touch()
    assert until(lambda: len(reported(tmp_path)) == MOST_WAITING + 1)
    command.close()
    assert any("5 notices were dropped" in line for line in lines)


def test_words_are_split_and_nothing_else_of_a_shell_is_done() -> None:
    python = sys.executable
    assert words_of(f"{python} -c 'a b' $HOME *") == [python, "-c", "a b", "$HOME", "*"]


@pytest.mark.parametrize("command", ["", "no-such-program-anywhere", "'open", os.devnull])
def test_what_is_no_command(command: str) -> None:
    with pytest.raises(UsageError, match="--notify"):
        words_of(command)
