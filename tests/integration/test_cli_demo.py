"""`gpuwatch demo`: a real training run, watched, and gone when the monitor is."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.command_line import ROOT, environment, gpuwatch, started, wait_until_ended
from tests.processes.demo_clone import clone_with
from tests.processes.monitored import LIMIT_S


def test_the_list_names_every_script() -> None:
    catalogue = json.loads((ROOT / "demo" / "catalogue.json").read_text())
    done = gpuwatch("demo", "--list")
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert listed == [entry["name"] for entry in catalogue]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_without_a_terminal_it_ends_with_the_input_verdict() -> None:
    done = gpuwatch("demo", limit_s=170, waits_s={"cli.demo.PLAIN_S": 8.0})
    assert done.returncode == 0, done.stderr
    report = done.stdout.split("-" * 40 + "\n")[1]
    assert "INPUT-BOUND" in report
    assert "num_workers" in report
    pid = int(re.findall(r"pid (\d+)", done.stderr)[0])
    wait_until_ended(pid)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_training_ends_with_the_monitor_however_that_ends(number: signal.Signals) -> None:
    with started("demo", "compute") as monitor:
        assert monitor.stderr is not None
        output = ""
        while "pid " not in output:
            output = monitor.stderr.readline()
        pid = int(re.findall(r"pid (\d+)", output)[0])
        os.kill(monitor.pid, number)
        monitor.wait(LIMIT_S)
        assert "Traceback" not in monitor.stderr.read()
    wait_until_ended(pid)
    assert monitor.returncode == (-9 if number == signal.SIGKILL else 128 + number)


def run_in(clone: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "gpuwatch.tui.cli.main", "demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=clone,
        env=environment(PYTHONPATH=str(clone)),
        check=False,
    )


DIES = "print('one')\nraise SystemExit(3)"


@pytest.mark.parametrize(
    "script",
    [
        DIES,
        f"import probe, time\nprobe.install()\nprobe.step()\ntime.sleep(2)\n{DIES}",
    ],
    ids=["before the probe", "while watched"],
)
def test_a_script_that_dies_shows_its_last_lines(tmp_path: Path, script: str) -> None:
    done = run_in(clone_with(tmp_path, script))
    assert done.returncode == 1
    assert "the training script ended: exit code 3" in done.stderr
    assert done.stderr.endswith("  one\n")


def test_what_is_missing_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    clone = clone_with(tmp_path, "")
    runner = clone / "runner.py"
    runner.write_text(
        "import sys\n"
        "import gpuwatch.tui.cli.demo as demo\n"
        "demo.find_spec = lambda name: None if name in ('torch', 'PIL') else name\n"
        "from gpuwatch.tui.cli.main import main\n"
        "sys.exit(main(['demo']))\n"
    )
    done = subprocess.run(
        [sys.executable, str(runner)],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment(PYTHONPATH=str(clone)),
        check=False,
    )
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1].endswith("pip install torch pillow")
