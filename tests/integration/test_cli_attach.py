"""`gpuwatch attach PID` without a screen, on a real process with the real probe."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.measuring.uses import waited_for_core_s
from tests.processes.command_line import environment, gpuwatch, started, toy
from tests.processes.monitored import LIMIT_S, until
from tests.unit.faces.strict_schema import strict


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines_follow_the_contract(tmp_path: Path) -> None:
    arguments = ("--json", "--duration", "4")
    with toy(tmp_path) as target, started("attach", str(target.pid), *arguments) as monitor:
        assert monitor.stdout is not None
        lines, waited_s = [], 0.0
        for line in monitor.stdout:
            lines.append(json.loads(line))
            if not lines[-1]["final"]:
                waited_s = waited_for_core_s(monitor.pid)
        assert monitor.wait(LIMIT_S) == 0
        assert target.poll() is None
    validator = jsonschema.Draft202012Validator(strict())
    for line in lines:
        validator.validate(line)
    assert [line["final"] for line in lines] == [False] * (len(lines) - 1) + [True]
    gaps = [after["t"] - before["t"] for before, after in pairwise(lines)]
    assert max(gaps) <= 1.2 + waited_s, "a line a second, where others leave it a core"
    last = lines[-1]
    assert last["target"]["pid"] == target.pid
    assert last["target"]["script"] == "toy.py"
    assert last["status"]["state"] == "live"
    assert last["steps"]["total"] > 50
    assert last["steps"]["p50_ms"] == pytest.approx(20, rel=0.5)
    assert last["steps"]["phases"]["load"]["share"] == pytest.approx(0.75, abs=0.15)
    assert sum(phase["share"] for phase in last["steps"]["phases"].values()) == pytest.approx(1)
    assert last["memory"]["rss_bytes"] > 1024**2


def test_once_prints_one_report_when_there_is_a_verdict(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        done = gpuwatch("attach", str(target.pid), "--once")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("gpuwatch   toy.py") == 1
    assert "WARMING UP" not in done.stdout
    assert "\nphases " in done.stdout


def test_plain_streams_and_ends_with_the_report(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        done = gpuwatch("attach", str(target.pid), "--plain", "--duration", "5")
    assert done.returncode == 0, done.stderr
    stream, report = done.stdout.split("-" * 40 + "\n")
    assert " steps/s · " in stream
    assert report.startswith("gpuwatch   toy.py")
    assert "\x1b" not in done.stdout


def test_without_a_terminal_the_screen_becomes_plain_and_shows_why(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        done = gpuwatch("attach", str(target.pid), "--duration", "1")
    assert done.returncode == 0
    assert "--plain" in done.stderr
    assert "gpuwatch   toy.py" in done.stdout


@pytest.mark.parametrize("face", ["--plain", "--json"])
@pytest.mark.parametrize(("kill", "how"), [(True, "was killed"), (False, "exited")])
def test_the_end_of_the_process_is_reported_and_is_a_normal_end(
    tmp_path: Path, face: str, kill: bool, how: str
) -> None:
    with toy(tmp_path) as target, started("attach", str(target.pid), face) as monitor:
        assert monitor.stdout is not None
        monitor.stdout.readline()
        if kill:
            target.kill()
        else:
            (tmp_path / "ends").touch()
        target.wait(LIMIT_S)
        out, err = monitor.communicate(timeout=LIMIT_S)
    assert monitor.returncode == 0, err
    assert how in " ".join(out.split())
    if face == "--json":
        last = records(out)[-1]
        assert (last["final"], last["status"]["state"]) == (True, "ended")


def test_ctrl_c_writes_the_last_line_and_no_traceback(tmp_path: Path) -> None:
    with toy(tmp_path) as target, started("attach", str(target.pid), "--json") as monitor:
        assert monitor.stdout is not None
        monitor.stdout.readline()
        monitor.send_signal(signal.SIGINT)
        out, err = monitor.communicate(timeout=LIMIT_S)
        assert target.poll() is None
    assert monitor.returncode == 130
    assert records(out)[-1]["final"] is True
    assert "Traceback" not in err


def test_a_closed_pipe_is_a_quiet_end(tmp_path: Path) -> None:
    with toy(tmp_path) as target, started("attach", str(target.pid), "--json") as monitor:
        assert monitor.stdout is not None
        assert monitor.stdout.readline()
        monitor.stdout.close()  # as `| head -1` does
        assert monitor.wait(LIMIT_S) == 0
        assert monitor.stderr is not None
        assert monitor.stderr.read() == ""


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with (
        toy(tmp_path) as target,
        Path("/dev/full").open("w") as full,
        started("attach", str(target.pid), "--json", stdout=full) as monitor,
    ):
        assert monitor.wait(LIMIT_S) == 1
        assert monitor.stderr is not None
        output = monitor.stderr.read()
    assert output == "gpuwatch: cannot write to standard output: No space left on device\n"


def test_the_run_does_not_notice_a_monitor_that_is_killed(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        with started("attach", str(target.pid), "--json") as monitor:
            assert monitor.stdout is not None
            assert monitor.stdout.readline()
            monitor.kill()
        done = gpuwatch("attach", str(target.pid), "--json", "--duration", "2")
        assert records(done.stdout)[-1]["status"]["state"] == "live"
        assert target.poll() is None


def test_ls_lists_it(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        table = gpuwatch("ls")
        alone = gpuwatch()
        lines = records(gpuwatch("ls", "--json").stdout)
    assert table.returncode == alone.returncode == 0
    assert any(
        f" {target.pid} " in f" {line} " and "toy.py" in line for line in table.stdout.splitlines()
    )
    assert "gpuwatch attach" in alone.stderr
    assert [line["script"] for line in lines if line["pid"] == target.pid] == ["toy.py"]


def test_no_screen_is_imported_by_what_needs_none(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from gpuwatch.tui.cli.main import main\n"
        "code = main(sys.argv[1:])\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('textual', 'rich')])\n"
        "sys.exit(code)\n"
    )
    runner = tmp_path / "runner.py"
    runner.write_text(script)
    with toy(tmp_path) as target:
        for arguments in (["ls"], ["attach", str(target.pid), "--plain", "--duration", "1"]):
            done = subprocess.run(
                [sys.executable, str(runner), *arguments],
                capture_output=True,
                text=True,
                timeout=30,
                env=environment(),
                check=True,
            )
            assert done.stdout.splitlines()[-1] == "[]"


def without_a_reader(pid: int, face: str) -> "subprocess.Popen[bytes]":
    """A monitor whose output is full from the start, and stays so."""
    reads, writes = os.pipe()
    size = fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writes, b"x" * size)
    monitor = subprocess.Popen(
        [sys.executable, "-m", "gpuwatch.tui.cli.main", "attach", str(pid), face, "--no-stacks"],
        stdin=subprocess.DEVNULL,
        stdout=writes,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    os.close(writes)
    until(lambda: is_writing(monitor.pid))
    monitor.reads = reads  # type: ignore[attr-defined]  # open as long as it runs
    return monitor


def is_writing(pid: int) -> bool:
    """Whether its main thread waits in a write: the pipe is full."""
    words = Path(f"/proc/{pid}/syscall").read_text().split()
    return words[:2] == ["1", "0x1"]


@pytest.mark.parametrize("face", ["--json", "--plain"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_one_signal_ends_a_monitor_whose_reader_has_stalled(
    tmp_path: Path, face: str, number: signal.Signals
) -> None:
    with toy(tmp_path) as run:
        monitor = without_a_reader(run.pid, face)
        monitor.send_signal(number)
        try:
            assert monitor.wait(LIMIT_S) == 128 + number
        finally:
            monitor.kill()
            monitor.wait()
            os.close(monitor.reads)  # type: ignore[attr-defined]
