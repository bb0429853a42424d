"""`gpuwatch doctor`: the same checks as on the screen, and the exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.processes.command_line import gpuwatch, toy
from tests.unit.doctor.test_checks import IDS


def checks(text: str) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in map(json.loads, text.splitlines())}


def test_without_a_process_it_shows_the_machine() -> None:
    done = gpuwatch("doctor")
    assert done.returncode == 0
    assert done.stderr == ""
    for name in IDS:
        assert f" {name} " in done.stdout
    assert "in order" in done.stdout.splitlines()[-1]


def test_its_json_has_stable_ids() -> None:
    done = gpuwatch("doctor", "--json")
    reported = checks(done.stdout)
    assert tuple(reported) == IDS
    assert reported["probe"]["state"] == "unknown"
    assert reported["cores"]["state"] == "ok"
    assert all(set(one) == {"schema", "id", "state", "says", "fix"} for one in reported.values())
    cores = len(os.sched_getaffinity(0))
    assert float(reported["cores"]["says"].split()[0]) <= cores


def test_of_a_run_it_shows_which_signals_arrived(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        reported = checks(gpuwatch("doctor", str(target.pid), "--json").stdout)
        assert target.poll() is None
    assert reported["probe"]["state"] == "ok"
    assert "steps and phases from within toy.py" in reported["probe"]["says"]
    assert reported["socket"]["says"] == "messages arrive, none lost"
    assert reported["py-spy"]["state"] == "ok"
    assert "samples of the main thread" in reported["py-spy"]["says"]


def test_one_that_has_ended_is_coded() -> None:
    done = gpuwatch("doctor", str(2**22 + 1), "--json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no process" in done.stderr


def test_one_without_a_probe_is_reported() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as waits:
        done = gpuwatch("doctor", str(waits.pid), "--json")
        waits.kill()
    assert done.returncode == 0
    probe = checks(done.stdout)["probe"]
    assert probe["state"] == "missing"
    assert probe["says"].startswith("not in the process: it adds step times")
    assert "gpuwatch run" in probe["fix"]
    assert "import probe; probe.install()" in probe["fix"]


def test_ascii_where_the_stream_takes_no_more() -> None:
    done = gpuwatch("doctor", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "?" not in done.stdout.replace("gpuwatch ls", "")
