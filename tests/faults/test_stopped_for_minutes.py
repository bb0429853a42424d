"""A monitor that is stopped for two real minutes (Ctrl-Z) and goes on."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.training import TRAIN, bare
from tests.processes.command_line import started as gpuwatch
from tests.processes.monitored import started

STEPS = 60_000
STOPPED_S = 120.0
BEFORE_S = 8.0
AFTER_S = 8.0
PACED = (
    TRAIN
    + """
    def paced(step):
        if not os.path.exists("hurry"):
            time.sleep(0.008)
"""
    + "    print('training', flush=True)\n"
    + f"    print(train({STEPS}, at_step=paced), flush=True)\n"
)
"""Goes on for as long as it is watched, and then fast."""


@pytest.mark.fault
@pytest.mark.xdist_group("machine")
@pytest.mark.timeout(500)
def test_it_goes_on_where_it_was_and_accuses_nobody_of_its_own_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with started(PACED, tmp_path) as run:
        assert run.line() == "training"
        with gpuwatch("attach", str(run.pid), "--json") as watching:
            looks = reported(watching)
            before = last_within(looks, BEFORE_S)[-1]
            os.kill(watching.pid, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(watching.pid, signal.SIGCONT)
            after = last_within(looks, AFTER_S)
            watching.send_signal(signal.SIGINT)
            watching.wait(20)
        (tmp_path / "hurry").touch()
        out, err = run.process.communicate(timeout=200)
    assert (out.strip(), err) == (bare(STEPS), "")
    assert "stalled" not in {look["verdict"]["kind"] for look in after}
    assert {look["status"]["state"] for look in after} == {"live"}
    assert after[-1]["steps"]["total"] > before["steps"]["total"] + 10 * STOPPED_S


def reported(watching: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """The lines of `--json`."""
    assert watching.stdout is not None
    for line in watching.stdout:
        yield json.loads(line)


def last_within(looks: Iterator[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """Those of the next so many seconds."""
    end_s = time.monotonic() + seconds
    seen = []
    while time.monotonic() < end_s:
        seen.append(next(looks))
    return seen
