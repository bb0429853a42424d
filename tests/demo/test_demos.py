"""The scripts of demo/ run, end by themselves and when stopped, and the catalogue names them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from gpuwatch.tui.verdict.findings import Kind
from tests.processes.monitored import SOON_ENDED

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "demo"
CATALOGUE: list[dict[str, Any]] = json.loads((DEMO / "catalogue.json").read_text())
SCRIPTS = [entry["script"] for entry in CATALOGUE]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}

# In one process, since importing torch takes longer than two steps do.
RUN_EACH = """
import runpy, sys
for script in sys.argv[2:]:
    for more in ([], ["--fix"]):
        saved, sys.argv = sys.argv, [script, "--steps", "2", *more]
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            assert end.code == 0, end.code
        sys.argv = saved
"""


def start(
    *arguments: str, environment: Mapping[str, str] = ENVIRONMENT, **options: Any
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_the_catalogue_names_every_script_once() -> None:
    trained = {path.name for path in DEMO.glob("*.py") if "probe.install()" in path.read_text()}
    assert sorted(SCRIPTS) == sorted(trained)
    names = [entry["name"] for entry in CATALOGUE]
    assert len(set(names)) == len(names)
    assert names[0] == "input", "the first is what `gpuwatch demo` runs without a name"


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry["name"])
def test_an_entry_shows_what_a_person_will_see(entry: dict[str, Any]) -> None:
    kinds = get_args(Kind)
    assert entry["kind"] in kinds
    assert entry.get("kind_without_gpu", "healthy") in kinds
    assert entry["sub"] is None or isinstance(entry["sub"], str)
    assert len(entry["title"]) <= 40
    assert len(entry["about"]) <= 90


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_begins_with_the_probe(script: str) -> None:
    lines = (DEMO / script).read_text().partition('"""\n\n')[2].splitlines()
    assert lines[:3] == ["import probe", "", "probe.install()"]


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_every_script_ends_after_its_steps_with_and_without_its_bottleneck(tmp_path: Path) -> None:
    paths = [str(DEMO / script) for script in SCRIPTS]
    code = f"{SOON_ENDED} import sys; sys.path.insert(0, {str(DEMO)!r}){RUN_EACH}"
    run = start("-c", code, "--", *paths, cwd=tmp_path)
    printed, complaints = run.communicate(timeout=140)
    assert run.returncode == 0, complaints
    assert printed.count("step      2") == 2 * len(paths)
    assert complaints == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_script_is_quiet_and_leaves_no_worker(stop: signal.Signals) -> None:
    # A signal between `open` and `with` leaves a file that Python warns of where a person asked
    # for every warning: nobody who presses Ctrl-C has.
    environment = {**ENVIRONMENT, "PYTHONWARNINGS": "default,ignore::ResourceWarning"}
    script = str(DEMO / "input_workers.py")
    run = start(script, "--steps", "0", environment=environment, start_new_session=True)
    training = psutil.Process(run.pid)
    deadline = time.monotonic() + 30
    while not (workers := training.children(recursive=True)) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    # Ctrl-C reaches everybody in the terminal, `kill` only the one it names.
    if stop == signal.SIGINT:
        os.killpg(run.pid, stop)
    else:
        run.send_signal(stop)
    _printed, complaints = run.communicate(timeout=20)
    assert workers
    assert run.returncode == 128 + stop
    # A worker that ends while it takes a batch over breaks a pipe of multiprocessing's own.
    assert "resource_sharer" in complaints or complaints == ""
    assert not [name for name in (str(DEMO), "probe", "KeyboardInterrupt") if name in complaints]
    _ended, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


def test_two_runs_at_once_make_the_photographs_once(tmp_path: Path) -> None:
    code = "import photographs; photographs.COUNT = 3; print(len(photographs.photographs()))"
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=DEMO, env=environment, text=True, stdout=-1
        )
        for _ in range(2)
    ]
    assert [run.communicate(timeout=50)[0].splitlines()[-1] for run in runs] == ["3", "3"]
    assert [path.name for path in tmp_path.iterdir()] == [f"gpuwatch-demo-{os.getuid()}"]
