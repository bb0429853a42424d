"""Generated runs and ordinary scripts as processes: they train, and are examined as a whole."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from evaluation.kept_runs import kept_in
from evaluation.ordinary import ORDINARY, scripts
from generated.draw import SMALL_SOUND_FROM, SOUND_FROM, draw
from generated.spec import Device
from generated.switches import switches
from gpuwatch.tui.verdict.findings import Kind
from tests.processes.monitored import SOON_ENDED

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
PLAY = str(ROOT / "demo" / "generated" / "play.py")
EVALUATE = str(ROOT / "demo" / "evaluate_runs.py")


def seed_with(cause: str, **axes: object) -> int:
    """The first seed of a small run that has it and nothing else."""
    for seed in range(2_000):
        spec = draw(seed, "cpu")
        causes = [each.name for each in spec.causes]
        right = all(getattr(spec, axis) == value for axis, value in axes.items())
        if causes == [cause] and spec.size == "small" and right:
            return seed
    raise AssertionError(f"no such run: {cause} {axes}")


def output_of(*command: str, timeout: float = 50) -> str:
    run = subprocess.run(
        [sys.executable, *command],
        env=ENVIRONMENT,
        input="\n",
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_sound_run_has_no_cause_and_changes_no_earlier_seed() -> None:
    sound = [draw(SOUND_FROM + at, device) for at in range(20) for device in get_args(Device)]
    assert not any(spec.causes for spec in sound)
    assert {spec.optimizer for spec in sound} <= {"sgd", "adamw-fused"}
    assert {spec.size for spec in sound if spec.device == "cuda"} == {"large"}
    assert any(draw(SOUND_FROM - at, "cpu").causes for at in range(1, 20))


def test_small_sound_nets_are_graphs_on_a_gpu() -> None:
    small = [draw(SMALL_SOUND_FROM + at, "cuda") for at in range(20)]
    assert {spec.size for spec in small} == {"small", "medium"}
    assert all(spec.graphed is not spec.compiled and not spec.causes for spec in small)
    graphed = [spec for spec in small if spec.graphed]
    assert not any(one.name == "graphs" for spec in graphed for one in switches(spec))
    assert not draw(SMALL_SOUND_FROM, "cpu").graphed


def test_a_seed_is_described_without_training() -> None:
    shown = output_of(PLAY, "0", "--describe")
    assert shown.startswith(draw(0, "cpu").describe())
    listed = [line.partition(":")[0] for line in shown.splitlines() if line.startswith("switch ")]
    assert [line.removeprefix("switch").strip() for line in listed] == [
        switch.name for switch in switches(draw(0, "cpu"))
    ]


@pytest.mark.suite
def test_a_switch_gives_what_its_cause_costs() -> None:
    seed = seed_with("logger", feed="function")  # of few switches
    (cause,) = draw(seed, "cpu").causes
    # Stdin ends after its first line: one step, and the turns.
    shown = output_of(PLAY, str(seed), "--examine", "--turn-seconds", "0.2", "--turns", "1")
    report: dict[str, Any] = json.loads(shown.splitlines()[-1])
    assert report["failed"] == {}
    names = [name for name, _ in report["turns"]]
    assert names[::2] == [""] * (len(names) // 2 + 1)
    changes = [each.name for each in switches(draw(seed, "cpu")) if not each.environment]
    assert list(dict.fromkeys(names[1::2])) == changes
    rates = dict(report["turns"])
    assert rates["logger"] / rates[""] > 1 + 0.3 * cause.strength / (1 - cause.strength)


def test_no_number_is_compiled_for_twice_in_a_process() -> None:
    """Nets of one class share what was compiled: with fused=True a run that compiles anew all the
    time was 2.2x as fast, for it found the graphs of the run as it is."""
    shown = output_of("-c", TEMPERATURES, str(ROOT / "demo"), str(seed_with("recompiles")))
    seen = json.loads(shown)
    assert len(set(seen)) == len(seen) == 4
    assert min(seen) > 1, "scores are divided by it"


TEMPERATURES = """
import json, sys
from dataclasses import replace
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/scenarios"]
from generated.draw import SOUND_FROM, draw
from generated.spec import Device
from generated.models import Models
spec, models, seen = draw(int(sys.argv[2]), "cpu"), Models(), []
nets = [models.model(spec), models.model(replace(spec, optimizer="hand"))]
for net in nets + nets:
    net.change_temperature()
    seen.append(net.temperature)
print(json.dumps(seen))
"""


@pytest.mark.slow
def test_a_run_is_watched_and_examined(tmp_path: Path) -> None:
    seed = seed_with("logger", feed="function")  # of few switches
    timing = ("--seconds", "3", "--turn-seconds", "0.2", "--turns", "1")
    output_of(EVALUATE, str(tmp_path), "--seeds", str(seed), *timing)
    (result,) = kept_in(tmp_path / "results.json")
    assert result.failed == {}
    assert result.gains[0].name == "logger"
    assert result.about["spec"]["seed"] == seed
    assert 0 < result.recording_bytes < 300_000
    assert (tmp_path / f"cpu-{seed}.gpuwatch").exists()
    output_of(EVALUATE, str(tmp_path), "--again")
    (again,) = kept_in(tmp_path / "results.json")
    assert (again.verdict, again.gains) == (result.verdict, result.gains)


def test_the_catalogue_of_ordinary_scripts_fits_them() -> None:
    every = scripts()
    paths = {path.stem for path in ORDINARY.glob("*.py")} - {"meter"}
    assert {script.name for script in every} == paths
    assert len(every) == 12
    for script in every:
        text = (ORDINARY / f"{script.name}.py").read_text()
        assert "probe" not in text
        assert len(text.splitlines()) < 200
        for change in script.switches:
            assert set(change.kinds) <= set(get_args(Kind))
            re.compile(change.advice)
            for flag in change.flags:
                assert not flag.startswith("--") or f'"{flag}"' in text, flag


# In one process, since importing torch and warming up take longer than the steps do.
RUN_EACH = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
import meter
meter.WARM_UP_S = 0.0
if __name__ == "__main__":
    for script in sys.argv[2:]:
        print("RUNS", script, flush=True)
        sys.argv = [script, "--seconds", "0.1"]
        runpy.run_path(script, run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_ordinary_scripts_train_under_gpuwatch_run(tmp_path: Path) -> None:
    runner = tmp_path / "run_each.py"
    runner.write_text(SOON_ENDED + RUN_EACH)
    paths = [str(ORDINARY / f"{script.name}.py") for script in scripts()]
    run = ("-m", "gpuwatch.tui.cli.main", "run", str(runner), str(ORDINARY))
    shown = output_of(*run, *paths, timeout=140)
    for path, part in zip(paths, shown.split("RUNS ")[1:], strict=True):
        first, *_, last = part.splitlines()
        assert first == path
        assert "first step done" in part
        assert json.loads(last)["steps_per_s"] > 0, path
