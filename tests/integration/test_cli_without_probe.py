"""`gpuwatch attach` and `record` on a real training that nobody prepared for it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.integration.unprobed import LOADS_SLOWLY, running, toy, training
from tests.processes.command_line import gpuwatch, started
from tests.unit.faces.strict_schema import strict

INJECTED = LOADS_SLOWLY.replace(
    "for number",
    """
import threading
def wait():
    sys.stdin.readline()
    import probe
    probe.install()
threading.Thread(target=wait, daemon=True).start()
for number""",
)
"""Takes the probe when asked: as `attach --inject` of somebody else would put it there."""


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def without(line: dict[str, Any]) -> bool:
    return any(one.startswith("probe:") for one in line["verdict"]["missing"])


@pytest.mark.slow
def test_a_run_that_nobody_prepared_on_every_face(tmp_path: Path) -> None:
    """Watched by three at once: torch is loaded once, and eight seconds pass once."""
    file = tmp_path / "run.gpuwatch"
    for_s = ("--duration", "8")
    with (
        training(tmp_path) as target,
        started("attach", str(target.pid), "--json", *for_s) as lines,
        started("record", str(target.pid), "-o", str(file), *for_s) as recorder,
    ):
        once = gpuwatch("attach", str(target.pid), "--once", limit_s=50)
        out, _ = lines.communicate(timeout=50)
        _, complaints = recorder.communicate(timeout=50)
        assert target.poll() is None
    assert (once.returncode, recorder.returncode) == (0, 0), once.stderr + complaints
    report_is_an_estimate(once.stdout)
    lines_have_nulls(records(out))
    last = records(gpuwatch("replay", str(file), "--json").stdout)[-1]
    assert last["status"]["mode"] == "no probe"
    assert last["sampled"]["phases"]["data"]["share"] > 0.6
    assert last["target"]["script"] == "train.py"


def report_is_an_estimate(report: str) -> None:
    """It names what holds the run, and how to know more."""
    assert report.startswith("gpuwatch   train.py")
    assert "no probe" in report.splitlines()[0]
    assert "INPUT-BOUND" in report
    assert "waiting for data takes ~" in report
    assert re.search(r"\b[5678]\d% sure", report), "an estimate is never certain"
    assert "num_workers 0" in report
    assert "probe.install()" in report, "how to have more"


def lines_have_nulls(lines: list[dict[str, Any]]) -> None:
    """Where nothing is known; and phases by samples."""
    validator = jsonschema.Draft202012Validator(strict())
    for line in lines:
        validator.validate(line)
    last = lines[-1]
    assert (last["status"]["mode"], last["status"]["state"]) == ("no probe", "live")
    assert last["steps"] is None
    assert last["open"] is None
    assert last["target"]["torch"] is None
    assert last["verdict"]["since_step"] is None
    assert sum(part["share"] for part in last["sampled"]["phases"].values()) == pytest.approx(1)
    assert last["sampled"]["phases"]["data"]["share"] > 0.6


def test_a_probe_that_comes_later_is_taken(tmp_path: Path) -> None:
    with (
        training(tmp_path, INJECTED) as target,
        started("attach", str(target.pid), "--json", "--no-stacks") as monitor,
    ):
        assert monitor.stdout is not None
        assert json.loads(monitor.stdout.readline())["status"]["mode"] == "no probe"
        assert target.stdin is not None
        target.stdin.write("\n")
        target.stdin.flush()
        lines = map(json.loads, iter(monitor.stdout.readline, ""))
        hooked = next(line for line in lines if line["steps"] is not None and not without(line))
    assert hooked["status"]["mode"] == "hooks"
    assert hooked["sampled"] is None


@pytest.mark.slow
def test_a_process_that_trains_nothing_is_opened_and_soon_reported_to_have_no_torch() -> None:
    script = "import time; print('here 1', flush=True); time.sleep(600)"
    with running([sys.executable, "-c", script]) as (process, _):
        done = gpuwatch("attach", str(process.pid), "--json", "--duration", "7.5", "--no-stacks")
    assert done.returncode == 0
    last = records(done.stdout)[-1]
    assert (last["verdict"]["kind"], last["verdict"]["sub"]) == ("incomplete", "torch")
    assert any("no torch loaded" in line for line in last["verdict"]["missing"])


def test_another_process_than_the_one_that_was_asked_for_is_reported(tmp_path: Path) -> None:
    command = f"{sys.executable} {toy(tmp_path)} & wait"
    with running(["sh", "-c", command]) as (shell, (pid,)):
        arguments = ("attach", str(shell.pid), "--json", "--duration", "1", "--no-stacks")
        done = gpuwatch(*arguments)
    assert f"has {pid} (train.py) below it: watching {pid}" in done.stderr
    assert records(done.stdout)[-1]["target"]["pid"] == pid


@pytest.mark.parametrize(("command", "code"), [(["sleep", "60"], 5), (["true"], 3)])
def test_what_cannot_be_watched_at_all(command: list[str], code: int) -> None:
    with subprocess.Popen(command) as process:
        if code == 3:
            process.wait()
        done = gpuwatch("attach", str(process.pid), "--once")
        process.kill()
    assert done.returncode == code
    assert len(done.stderr.splitlines()) <= 3
