"""Scripts that an evaluation starts."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from evaluation.launching import Launched

DEMO = Path(__file__).parents[2] / "demo"
STARTS_ONE = """
import subprocess, sys
import psutil
from evaluation.launching import end_all_when_ended
end_all_when_ended()
ended = subprocess.Popen([sys.executable, "-c", ""])
gone, listed = psutil.Process(ended.pid), psutil.Process.children
ended.wait()
psutil.Process.children = lambda self, recursive: [gone, *listed(self, recursive)]
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                         start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def test_an_evaluation_that_is_ended_leaves_no_script_behind() -> None:
    """Under `timeout`: what it had started used 50 GiB of the next run's GPU. One that ended by
    itself, as they were listed, keeps no other alive."""
    command = [sys.executable, "-c", STARTS_ONE]
    with subprocess.Popen(command, cwd=DEMO, stdout=subprocess.PIPE, text=True) as evaluation:
        assert evaluation.stdout is not None
        started = psutil.Process(int(evaluation.stdout.readline()))
        evaluation.send_signal(signal.SIGTERM)
        assert evaluation.wait(30) == 128 + signal.SIGTERM
        psutil.wait_procs([started], timeout=30)
        assert not started.is_running() or started.status() == psutil.STATUS_ZOMBIE


class Ended(NamedTuple):
    """A thread that was listed."""

    id: int


@dataclass(frozen=True)
class Waits:
    """A script that waits for a line."""

    folder: Path
    cores: tuple[int, ...]
    name: str = "waits"
    title: str = "waits"
    seconds: float | None = None
    probe: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    def command(self) -> list[str]:
        return [sys.executable, "-c", "input()"]


def test_a_script_begins_on_its_own_cores_though_a_thread_of_its_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It imports on cores beside the run that is measured; all other runs were lost with it."""
    cores = sorted(os.sched_getaffinity(0))
    launched = Launched(Waits(tmp_path, (cores[0],)), beside=(cores[-1],))
    try:
        assert os.sched_getaffinity(launched.process.pid) == {cores[-1]}
        listed = psutil.Process.threads
        ended = Ended(2**22 - 1)
        monkeypatch.setattr(psutil.Process, "threads", lambda self: [ended, *listed(self)])
        launched.begin(more=True)
        assert os.sched_getaffinity(launched.process.pid) == {cores[0]}
    finally:
        launched.stop()
