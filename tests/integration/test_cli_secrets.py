"""A token on the command line of a run: nowhere, unless somebody asks for it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.tui.model.observations import Greeted
from gpuwatch.tui.recording.reader import Recording
from tests.processes.command_line import TOY, environment, gpuwatch

SECRET = "hunter2"
MASKED = ["--token", "***", "--lr=0.1"]


@pytest.fixture(scope="module")
def pid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path = tmp_path_factory.mktemp("run") / "train.py"
    path.write_text(TOY.format(steps=100_000))
    words = [sys.executable, str(path), "--token", SECRET, "--lr=0.1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "armed\n"
        yield run.pid
        run.kill()


def test_json_lines(pid: int) -> None:
    words = ("attach", str(pid), "--json", "--no-stacks", "--duration", "1")
    done = gpuwatch(*words)
    assert SECRET not in done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["target"]["argv"][1:] == MASKED
    asked = gpuwatch(*words, "--argv")
    assert SECRET in json.loads(asked.stdout.splitlines()[-1])["target"]["argv"]


def test_the_list(pid: int) -> None:
    for words in (("ls",), ("ls", "--json")):
        done = gpuwatch(*words)
        assert str(pid) in done.stdout
        assert SECRET not in done.stdout
    (one,) = [json.loads(x) for x in gpuwatch("ls", "--json", "--argv").stdout.splitlines()
              if json.loads(x)["pid"] == pid]  # fmt: skip
    assert SECRET in one["argv"]


def test_a_recording_is_its_owners_alone_and_holds_none(pid: int, tmp_path: Path) -> None:
    path = tmp_path / "run.gpuwatch"
    done = gpuwatch("record", str(pid), "-o", str(path), "--duration", "1", "--no-stacks")
    assert done.returncode == 0, done.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    recording = Recording(path)
    entries = list(recording.entries())
    recording.close()
    assert SECRET not in repr(entries)
    greeted = [one for one in entries if isinstance(one, Greeted)]
    assert greeted[0].hello.argv[1:] == MASKED
