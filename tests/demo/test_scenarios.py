"""The scenarios run, small and without a GPU, with their cause and without; the catalogue fits."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from evaluation.catalogue import Scenario
from gpuwatch.tui.verdict.findings import Kind
from tests.processes.monitored import SOON_ENDED

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "demo" / "scenarios"
CATALOGUE: list[dict[str, Any]] = json.loads((SCENARIOS / "catalogue.json").read_text())
NAMES = [entry["name"] for entry in CATALOGUE]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{SCENARIOS}", "OMP_NUM_THREADS": "1"}
SUBS = {
    "input": {
        *("workers", "serial", "storage", "waits", "burst", "epoch-start", "oversubscribed"),
        *("cpu-bound", "cores"),
    },
    "launch": {"cpu-starved"},
    "compute": {"saturated", "precision", "fp32", "misaligned", "underfilled", "cells", "parts"},
    "evaluation": {"rollout"},
    "memory-growth": {"growth", "leak", "fragmentation"},
}
"""The subs that a kind has; no other kind has any."""
SHARED = {"machine.py", "nets.py", "options.py", "samples.py", "scenario.py"}
FAMILIES = {"steady", "bursty", "memory", "negative", "mixed", "regime"}
OF_ONE_PROCESS = {f"S{number:02}" for number in range(1, 51)} - {"S43", "S44", "S45", "S46"}
"""The numbers of the catalogue that need no second process on a second GPU."""
_WITHOUT_GPU = (*range(1, 9), 28, *range(30, 33), *range(35, 41), 42, 49, 50)
WITHOUT_GPU = {f"S{number:02}" for number in _WITHOUT_GPU}
"""Those whose truth is known without a GPU too."""
NOTHING_TO_FIX = {"compute", "memory-bandwidth", "healthy"}

# In one process, since importing torch takes longer than three steps do. A file and not `-c`, and
# guarded, because a child that is spawned imports the main module again.
RUN_EACH = """
import importlib, sys, torch
if __name__ == "__main__":
    cut = sys.argv.index("--")
    for name in sys.argv[cut + 1:]:
        for more in ([], ["--without-cause"]):
            report = importlib.import_module(name).main([*sys.argv[1:cut], *more])
            print("RAN", name, len(more), report.steps, flush=True)
            torch.cuda.empty_cache()
"""


def test_the_catalogue_names_every_script_once() -> None:
    scripts = {path.name for path in SCENARIOS.glob("*.py")} - SHARED
    assert sorted(entry["script"] for entry in CATALOGUE) == sorted(scripts)
    assert len(set(NAMES)) == len(NAMES) >= 32


def test_the_suite_has_every_scenario_of_the_table() -> None:
    assert {number for entry in CATALOGUE for number in entry["ids"]} == OF_ONE_PROCESS
    assert {number for entry in CATALOGUE if entry["cpu"] for number in entry["ids"]} >= WITHOUT_GPU
    assert {entry["family"] for entry in CATALOGUE} == FAMILIES


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_second_scenario_of_a_family_is_kept_for_the_report(family: str) -> None:
    halves = [entry["half"] for entry in CATALOGUE if entry["family"] == family]
    assert halves == ["tune" if number % 2 == 0 else "report" for number in range(len(halves))]


@pytest.mark.parametrize("entry", CATALOGUE, ids=NAMES)
def test_an_entry_shows_what_is_true(entry: dict[str, Any]) -> None:
    assert set(entry) == {field.name for field in fields(Scenario)}
    assert entry["script"] == f"{entry['name']}.py"
    assert len(entry["title"]) <= 40
    assert entry["negative"] == (entry["family"] == "negative") == (entry["first_action"] is None)
    if not entry["negative"]:
        assert entry["switch"], "a cause that cannot be removed has no measured truth"
        re.compile(entry["first_action"])


@pytest.mark.parametrize("entry", CATALOGUE, ids=NAMES)
@pytest.mark.parametrize("gpu", [True, False])
def test_what_an_entry_expects_is_something_that_a_verdict_can_be(
    entry: dict[str, Any], gpu: bool
) -> None:
    expected = Scenario(**entry).expected(gpu)
    kind, *also = expected.kinds
    assert {kind, *also} <= set(get_args(Kind))
    assert len({kind, *also}) == 1 + len(also)
    assert expected.sub in SUBS.get(kind, set()) | {None}
    assert expected.negative == entry["negative"]
    if expected.negative:
        assert {kind, *also} <= NOTHING_TO_FIX
        assert kind == ("compute" if gpu or not entry["cpu"] else "healthy")


@pytest.mark.parametrize("entry", CATALOGUE, ids=NAMES)
def test_a_script_begins_with_the_probe_and_shows_what_its_switch_does(
    entry: dict[str, Any],
) -> None:
    text = (SCENARIOS / entry["script"]).read_text()
    about, _, code = text.partition('"""\n\n')
    assert "`--without-cause`" in about
    assert code.splitlines()[:3] == ["import probe", "", "probe.install()"]
    changes = "options.cause" in code or "options.has(" in code
    assert changes == (entry["switch"] is not None)
    assert ("CAUSES = " in code) == bool(entry["causes"])
    assert entry["kind"] == (entry["causes"] or [entry["kind"]])[0]
    assert ("options.scaled(" in code) == (entry["scales"] != [1.0])
    assert ("options.sizes(" in code and "cpu=" in code) == entry["cpu"]
    assert ("run.count_from(" in code) == (entry["from_step"] > 0)
    assert len(text.splitlines()) < 100


@pytest.mark.suite
@pytest.mark.slow
@pytest.mark.timeout(150)
def test_every_script_runs_with_and_without_its_cause(tmp_path: Path) -> None:
    run_each(NAMES, tmp_path, "--tiny", "--steps", "3", timeout=140)


@pytest.mark.gpu
@pytest.mark.timeout(600)
def test_every_script_runs_in_its_full_size(tmp_path: Path) -> None:
    run_each(NAMES, tmp_path, "--steps", "3", timeout=590)


def run_each(names: list[str], folder: Path, *options: str, timeout: float) -> None:
    """Three steps of each, with its cause and without, one after the other in one process."""
    runner = folder / "run_each.py"
    runner.write_text(SOON_ENDED + RUN_EACH)
    run = subprocess.run(
        [sys.executable, str(runner), *options, "--", *names],
        env=ENVIRONMENT,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert run.returncode == 0, run.stderr
    ran = [line for line in run.stdout.splitlines() if line.startswith("RAN")]
    assert ran == [f"RAN {name} {without} 2" for name in names for without in (0, 1)]
    assert [path.name for path in folder.iterdir()] == ["run_each.py"]


def test_a_script_waits_to_be_asked_and_reports_after_its_seconds(tmp_path: Path) -> None:
    script = str(SCENARIOS / "launch_layers.py")
    run = subprocess.Popen(
        [sys.executable, script, "--tiny", "--wait", "--seconds", "0.5"],
        env=ENVIRONMENT,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(timeout=4)
    printed, complaints = run.communicate("\n", timeout=40)
    assert run.returncode == 0, complaints
    assert complaints == ""
    first, last = printed.splitlines()
    report = json.loads(last)
    assert first == "first step done"
    assert report["steps"] > 5
    assert report["seconds"] >= 0.5
    assert report["steps_per_s"] == pytest.approx(report["steps"] / report["seconds"], rel=0.01)
    assert report["samples_per_s"] == pytest.approx(4 * report["steps_per_s"], rel=0.01)
    assert 0 < report["median_ms"] < 500


# A loader's worker that is ended while it hands over a batch says so: that noise is torch's own.
@pytest.mark.parametrize(("script", "workers"), [("host_logger.py", 0), ("loader_workers.py", 1)])
def test_a_script_that_is_stopped_leaves_no_worker(
    script: str, workers: int, tmp_path: Path
) -> None:
    run = subprocess.Popen(
        [sys.executable, str(SCENARIOS / script), "--tiny"],
        env=ENVIRONMENT,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "first step done\n"
    children = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGTERM)
    _printed, complaints = run.communicate(timeout=20)
    assert run.returncode == 128 + signal.SIGTERM
    assert len(children) == workers
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert workers or complaints == ""


@pytest.mark.suite
def test_the_driver_measures_what_a_cause_costs(tmp_path: Path) -> None:
    run = subprocess.run(
        [
            *(sys.executable, "demo/record_scenarios.py", str(tmp_path)),
            *("--only", "host_logger,gpt_bf16", "--tiny"),
            *("--no-recording", "--counterfactual", "--bare-seconds", "0.5"),
        ],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert truth["host_logger"]["kind"] == "host"
    assert truth["host_logger"]["step_ms_with"] > 30, "it sleeps for 30 ms a step"
    assert truth["host_logger"]["speedup"] > 1.5
    assert truth["gpt_bf16"]["speedup"] == 1.0
    assert truth["gpt_bf16"]["negative"]


def test_the_driver_reports_a_scenario_that_fails_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import record_scenarios

    monkeypatch.setattr(record_scenarios, "SCENARIOS", tmp_path)
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE[:2]))
    first, second = (tmp_path / entry["script"] for entry in CATALOGUE[:2])
    first.write_text("input(); raise SystemExit('no such GPU')")
    report = json.dumps({"steps_per_s": 4.0, "samples_per_s": 8.0})
    second.write_text(f"input(); print({report!r})")
    out = tmp_path / "out"
    assert record_scenarios.main([str(out), "--no-recording", "--counterfactual"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == [NAMES[0]] * 2 + [NAMES[1]] * 2
    assert "FAILED with: ended with 1 (no such GPU)" in printed[0]
    assert list(json.loads((out / "truth.json").read_text())) == [NAMES[1]]
