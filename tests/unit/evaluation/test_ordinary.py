"""Ordinary scripts: recorded under `gpuwatch run`, then run with each change, and without."""

import json
from pathlib import Path

import pytest

from evaluation import ordinary
from evaluation.examined import Examined
from evaluation.kept_runs import advice_of
from evaluation.ordinary import ScriptPlan, run_scripts, scripts
from evaluation.seeds import Slot

SCRIPT = """
import probe

probe.install()
import json, sys, time

seconds = float(sys.argv[sys.argv.index("--seconds") + 1])
if "--broken" in sys.argv:
    sys.exit("no such layer")
pause_s = 0.004 if "--fast" in sys.argv else 0.02
print("first step done", flush=True)
steps, begin = 0, time.monotonic()
while time.monotonic() - begin < seconds:
    time.sleep(pause_s)
    probe.step()
    steps += 1
print(json.dumps({"steps_per_s": steps / seconds, "samples_per_s": 2 * steps / seconds}))
print("a worker complains", flush=True)
"""


def change(name: str, *devices: str) -> dict[str, object]:
    shared = {"kinds": ["host"], "advice": "sleeps", "change": "it sleeps less"}
    return {"name": name, "flags": [f"--{name}"], "devices": devices, **shared}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    changes = [change("fast", "cpu", "cuda"), change("broken", "cpu"), change("later", "cuda")]
    row = {"name": "sleeps", "title": "a script that sleeps", "switches": changes}
    (tmp_path / "catalogue.json").write_text(json.dumps([row]))
    (tmp_path / "sleeps.py").write_text(SCRIPT)
    monkeypatch.setattr(ordinary, "ORDINARY", tmp_path)
    return tmp_path


def test_a_script_is_recorded_and_run_with_each_change(folder: Path) -> None:
    results: list[Examined] = []
    plan = ScriptPlan("cpu", seconds=2.0, turn_seconds=0.5, turns=1, folder=folder)
    assert run_scripts(scripts(), plan, [Slot((), None)], results.append) == []
    (result,) = results
    assert [gain.name for gain in result.gains] == ["fast"]
    assert result.gains[0].gain == pytest.approx(5, rel=0.5)
    assert "no such layer" in result.failed["broken"]
    assert (folder / "cpu-sleeps.gpuwatch").stat().st_size == result.recording_bytes
    assert advice_of(result)["fast"] == "sleeps"


def test_a_script_that_is_not_in_the_catalogue_is_named(folder: Path) -> None:
    with pytest.raises(SystemExit, match="no such script: other"):
        scripts("sleeps,other")
