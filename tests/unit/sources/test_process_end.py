"""How a process ended, as the kernel knows it until the parent has asked."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.tui.model.observations import ProcessesSeen, TargetEnded
from gpuwatch.tui.sources import process
from gpuwatch.tui.sources.process import ProcessSource, how_it_ended
from gpuwatch.tui.sources.system import cores_of


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("pass", "exited normally"),
        ("raise SystemExit(3)", "exited with code 3"),
        ("import os; os.kill(os.getpid(), 9)", "was killed (signal 9)"),
    ],
)
def test_the_exit_status_of_a_process_that_is_not_reaped(code: str, text: str) -> None:
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        stat = Path(f"/proc/{child.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert how_it_ended(child.pid, 7).text == text
    assert how_it_ended(child.pid, 7).text == "ended"


@pytest.fixture
def running() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_one_that_has_ended_before_the_first_look(running: "subprocess.Popen[bytes]") -> None:
    running.kill()
    running.wait()
    source = ProcessSource(running.pid)
    source.open()
    (seen,) = source.poll(7)
    assert seen == TargetEnded(t_ns=7)
    assert source.poll(8) == []


def test_one_that_ends_while_it_is_looked_at(
    running: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent, a shell, reads its status at once: nothing is left to be asked."""
    source = ProcessSource(running.pid)
    source.open()

    def asked(pid: int) -> float:
        running.kill()
        running.wait()
        return cores_of(pid)

    monkeypatch.setattr(process, "cores_of", asked)
    (seen,) = source.poll(7)
    assert isinstance(seen, TargetEnded)


def test_what_fails_while_it_lives_is_no_end(
    running: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ProcessSource(running.pid)
    source.open()

    def asked(pid: int) -> float:
        raise FileNotFoundError(pid)

    monkeypatch.setattr(process, "cores_of", asked)
    with pytest.raises(FileNotFoundError):
        source.poll(7)
    monkeypatch.undo()
    (seen,) = source.poll(8)
    assert isinstance(seen, ProcessesSeen)
