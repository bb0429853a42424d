"""A monitor that is stopped for two real minutes (Ctrl-Z, a laptop that is closed) and goes on."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.training import TRAIN, bare
from tests.integration.command_line import started as gpuwatch
from tests.integration.monitored import started

STEPS = 15_000
STOPPED_S = 120.0
BEFORE_S = 8.0
AFTER_S = 8.0
PACED = (
    TRAIN
    + "    print('training', flush=True)\n"
    + f"    print(train({STEPS}, at_step=lambda step: time.sleep(0.008)), flush=True)\n"
)


@pytest.mark.fault
@pytest.mark.timeout(400)
def test_it_goes_on_where_it_was_and_accuses_nobody_of_its_own_silence(tmp_path: Path) -> None:
    with started(PACED, tmp_path) as run:
        assert run.line() == "training"
        with gpuwatch("attach", str(run.pid), "--json") as watching:
            looks = told(watching)
            begun_s = time.monotonic()
            while time.monotonic() < begun_s + BEFORE_S:
                before = next(looks)
            os.kill(watching.pid, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(watching.pid, signal.SIGCONT)
            begun_s = time.monotonic()
            after = []
            while time.monotonic() < begun_s + AFTER_S:
                after.append(next(looks))
            watching.send_signal(signal.SIGINT)
            watching.wait(20)
        out, err = run.process.communicate(timeout=200)
    assert (out.strip(), err) == (bare(STEPS), "")
    assert "stalled" not in {look["verdict"]["kind"] for look in after}
    assert {look["status"]["state"] for look in after} == {"live"}
    assert after[-1]["steps"]["total"] > before["steps"]["total"] + STOPPED_S


def told(watching: Any) -> Iterator[dict[str, Any]]:
    """The lines of `--json`."""
    for line in watching.stdout:
        yield json.loads(line)
