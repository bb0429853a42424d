"""A training script as a child: it ends with us, and its workers with it."""

import os
import time
from pathlib import Path

import pytest

from gpuwatch.tui.cli.demo_runs import Training, how_it_ended

WITH_A_WORKER = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.{on_int})
signal.signal(signal.SIGTERM, signal.{on_term})
if os.fork() == 0:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def started(folder: Path, script: str) -> Training:
    path = folder / "script.py"
    path.write_text(script)
    return Training(path, folder / "log", None)


def worker_of(training: Training) -> int:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if lines := training.tail():
            return int(lines[-1])
        time.sleep(0.02)
    raise AssertionError("the script did not start")


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("on_int", "on_term"), [("SIG_DFL", "SIG_DFL"), ("SIG_IGN", "SIG_DFL"), ("SIG_IGN", "SIG_IGN")]
)
def test_it_is_asked_then_made_to_end_with_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_int: str, on_term: str
) -> None:
    monkeypatch.setattr("gpuwatch.tui.cli.demo_runs.GRACE_S", (0.2, 0.2))
    training = started(tmp_path, WITH_A_WORKER.format(on_int=on_int, on_term=on_term))
    worker = worker_of(training)
    training.end()
    assert training.exit_status is not None
    deadline = time.monotonic() + 5
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(worker)
    training.end()


def test_a_script_that_dies_leaves_its_last_lines(tmp_path: Path) -> None:
    training = started(tmp_path, "for i in range(50): print(i)\nraise SystemExit(3)")
    deadline = time.monotonic() + 10
    while training.exit_status is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert training.exit_status == 3
    assert training.tail() == [str(i) for i in range(35, 50)]
    training.end()


def test_it_does_not_get_our_input_nor_our_session(tmp_path: Path) -> None:
    script = "import os; print(os.getsid(0) == os.getpid(), os.read(0, 1))"
    training = started(tmp_path, script)
    deadline = time.monotonic() + 10
    while training.exit_status is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert training.tail() == ["True b''"]
    assert os.getsid(0) != training.pid
    training.end()


def test_how_it_ended_in_words() -> None:
    assert how_it_ended(1) == "exit code 1"
    assert how_it_ended(-9) == "SIGKILL"
