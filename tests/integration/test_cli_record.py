"""`gpuwatch record` and `replay`: a real process is written down, and what is there is replayed."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.processes.command_line import gpuwatch, started, toy
from tests.processes.monitored import LIMIT_S
from tests.processes.pseudo_terminal import PseudoTerminal


def records(text: str) -> list[dict[str, Any]]:
    """One object a line."""
    return [json.loads(line) for line in text.splitlines()]


def wait_for_bytes(path: Path, least: int, recorder: "subprocess.Popen[str]") -> None:
    """Until so much has been written."""
    deadline = time.monotonic() + LIMIT_S
    while not path.exists() or path.stat().st_size < least:
        assert recorder.poll() is None, recorder.communicate()
        assert time.monotonic() < deadline, (
            f"{path.exists() and path.stat().st_size} bytes are written"
        )
        time.sleep(0.05)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of six seconds."""
    folder = tmp_path_factory.mktemp("recorded")
    file = folder / "run.gpuwatch"
    with toy(folder) as target:
        done = gpuwatch("record", str(target.pid), "-o", str(file), "--duration", "6")
        assert target.poll() is None
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert len(done.stderr.splitlines()) == 2
    return file


def test_a_recording_is_replayed_on_every_face(file: Path) -> None:
    lines = records(gpuwatch("replay", str(file), "--json").stdout)
    assert len(lines) >= 6
    assert [line["final"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1]["verdict"]["kind"] == "host"
    assert lines[-1]["steps"]["total"] > 200
    once = gpuwatch("replay", str(file), "--once")
    assert (once.returncode, once.stderr) == (0, "")
    assert "HOST-BOUND" in once.stdout
    plain = gpuwatch("replay", str(file), "--speed", "50")
    assert "--plain" in plain.stderr
    assert "HOST-BOUND" in plain.stdout


def test_a_recorder_that_is_killed_leaves_what_it_has_seen(tmp_path: Path) -> None:
    file = tmp_path / "run.gpuwatch"
    with toy(tmp_path) as target, started("record", str(target.pid), "-o", str(file)) as recorder:
        wait_for_bytes(file, 2_500, recorder)
        recorder.kill()
        recorder.wait(LIMIT_S)
    done = gpuwatch("replay", str(file), "--json")
    assert done.returncode == 0
    assert done.stderr.count("run.gpuwatch ends early: it was not ended in order") == 1
    last = records(done.stdout)[-1]
    assert (last["final"], last["status"]["state"]) == (True, "live")
    assert last["steps"]["total"] > 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "run.gpuwatch"
    with toy(tmp_path) as target, started("record", str(target.pid), "-o", str(file)) as recorder:
        wait_for_bytes(file, 1_000, recorder)
        recorder.send_signal(number)
        _, err = recorder.communicate(timeout=LIMIT_S)
        assert target.poll() is None
    assert recorder.returncode == 0
    assert "gpuwatch replay" in err
    assert gpuwatch("replay", str(file), "--once").stderr == ""


def test_it_ends_with_the_process(tmp_path: Path) -> None:
    file = tmp_path / "run.gpuwatch"
    with toy(tmp_path) as target, started("record", str(target.pid), "-o", str(file)) as recorder:
        wait_for_bytes(file, 1_000, recorder)
        (tmp_path / "ends").touch()
        target.wait(LIMIT_S)
        _, err = recorder.communicate(timeout=LIMIT_S)
    assert recorder.returncode == 0, err
    last = records(gpuwatch("replay", str(file), "--json").stdout)[-1]
    assert last["status"]["state"] == "ended"
    assert "exited" in last["status"]["ended"]


def test_what_is_no_recording_is_neither_replayed_nor_replaced(tmp_path: Path) -> None:
    script = tmp_path / "toy.py"
    with toy(tmp_path) as target:
        for arguments in (["replay", str(script)], ["record", str(target.pid), "-o", str(script)]):
            done = gpuwatch(*arguments)
            assert done.returncode == 2
            assert len(done.stderr.splitlines()) == 3
            assert "is not a recording" in done.stderr
        for path, why in ((tmp_path, "is a directory"), (tmp_path / "a" / "b", "not a directory")):
            done = gpuwatch("record", str(target.pid), "-o", str(path))
            assert (done.returncode, why in done.stderr) == (2, True)
    assert script.read_text().lstrip().startswith("import os")


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        done = gpuwatch("record", str(target.pid), "-o", "/dev/full")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr


def test_a_replay_fills_the_screen_and_its_last_picture_stays(file: Path) -> None:
    arguments = ("replay", str(file), "--speed", "4")
    with PseudoTerminal("gpuwatch.tui.cli.main", *arguments, size=(100, 30)) as terminal:
        terminal.read_until(lambda: terminal.shows("■ over"))
        assert terminal.shows("HOST-BOUND")
        assert terminal.process.poll() is None
        os.write(terminal.master, b"q")
        assert terminal.wait() == 0
