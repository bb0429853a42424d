"""Bad input: three short lines, the documented code, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.command_line import ROOT, environment, gpuwatch, toy


def ended_pid() -> int:
    """A pid that was just given back."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["attach"], "PID"),
        (["attach", "train.py"], "not a process id"),
        (["attach", "-5"], "PID"),
        (["attach", "0"], "not a process id"),
        (["attach", "99999999999999999999"], "not a process id"),
        (["attach", "1", "--json", "--plain"], "not allowed with"),
        (["attach", "1", "--duration", "0"], "not a number of seconds"),
        (["attach", "1", "--duration", "nan"], "not a number of seconds"),
        (["attach", "1", "--duration", "soon"], "not a number of seconds"),
        (["attach", "1", "--jso"], "unrecognized"),
        (["frobnicate"], "gpuwatch: unknown command 'frobnicate'\nCommands: ls, attach, "),
        (["atach"], "\nTry: gpuwatch attach\n"),
        (["frobnicate"], "\nSee: gpuwatch --help\n"),
        (["demo", "nonsense"], "unknown demo 'nonsense'"),
    ],
)
def test_usage(arguments: list[str], output: str) -> None:
    done = gpuwatch(*arguments)
    assert done.returncode == 2
    assert output in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_no_such_process() -> None:
    done = gpuwatch("attach", str(ended_pid()), "--json")
    assert done.returncode == 3
    assert done.stderr.startswith("gpuwatch: no process ")
    assert len(done.stderr.splitlines()) <= 3
    assert done.stdout == ""


def test_a_process_that_is_not_python() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            done = gpuwatch("attach", str(process.pid), "--once")
        finally:
            process.kill()
    assert done.returncode == 5
    assert 'is "sleep", not Python' in done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user")
def test_somebody_elses_process(tmp_path: Path) -> None:
    runner = tmp_path / "runner.py"
    runner.write_text(
        "import os, sys\n"
        "from gpuwatch.tui.cli.main import main\n"
        "from tests.processes.loaded import load_everything\n"
        "load_everything()\n"
        "os.setuid(65534)\n"
        "sys.exit(main(['attach', sys.argv[1], '--json']))\n"
    )
    with toy(tmp_path) as target:
        done = subprocess.run(
            [sys.executable, str(runner), str(target.pid)],
            capture_output=True,
            text=True,
            timeout=30,
            env=environment(),
            check=False,
        )
    assert done.returncode == 4, done.stderr
    assert "belongs to" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["demo", "--list"], ["ls", "--help"]]
)
def test_a_full_disk_under_what_is_quickly_reported(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gpuwatch.tui.cli.main", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "gpuwatch: cannot write to standard output: No space left on device\n"


def test_standard_output_that_was_closed_before_is_no_error() -> None:
    command = f"{sys.executable} -m gpuwatch.tui.cli.main demo --list >&-"
    done = subprocess.run(
        command, shell=True, stderr=subprocess.PIPE, text=True, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_ascii_terminal_gets_ascii() -> None:
    done = gpuwatch("demo", "--list", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_no_sign_of_ours_is_a_question_mark_in_ascii() -> None:
    """A recording that is over ended in "? over"."""
    recording = ROOT / "demo" / "recordings" / "loader_workers.gpuwatch"
    done = gpuwatch("report", str(recording), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "?" not in done.stdout
    assert "# over" in " ".join(done.stdout.split())


def test_version_names_what_a_bug_report_needs() -> None:
    done = gpuwatch("--version")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names[:2] == ["gpuwatch", "python"]
    assert {"textual", "pyzmq", "py-spy", "torch"} <= set(names)


def test_an_unexpected_error_is_one_line_and_a_traceback_when_asked(tmp_path: Path) -> None:
    runner = tmp_path / "runner.py"
    runner.write_text(
        "import sys\n"
        "import gpuwatch.tui.cli.listing as listing\n"
        "import gpuwatch.tui.discovery.targets as targets\n"
        "def broken():\n"
        "    raise ZeroDivisionError('one\\ntwo')\n"
        "targets.find_probes = broken\n"
        "from gpuwatch.tui.cli.main import main\n"
        "sys.exit(main(['ls']))\n"
    )
    for debug, lines in (("", 2), ("1", None)):
        done = subprocess.run(
            [sys.executable, str(runner)],
            capture_output=True,
            text=True,
            timeout=30,
            env=environment(GPUWATCH_DEBUG=debug),
            check=False,
        )
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) == bool(debug)
        assert "ZeroDivisionError: one" in done.stderr
        assert lines is None or len(done.stderr.splitlines()) == lines
