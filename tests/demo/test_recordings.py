"""Recordings made on a GPU are tests: replayed here, each ends in the verdict that is true.

The truth is that of the scenario that was recorded (demo/scenarios/catalogue.json). No recording at
all is allowed; a recording, a row of the catalogue or a measured truth without the others is not.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.cli.main import main

DEMO = Path(__file__).parents[2] / "demo"
RECORDINGS = DEMO / "recordings"
SCENARIOS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in json.loads((DEMO / "scenarios" / "catalogue.json").read_text())
}


def rows_of(name: str) -> Any:
    """The content of a JSON file beside the recordings; None where there is none."""
    path = RECORDINGS / name
    return json.loads(path.read_text()) if path.exists() else None


WORTH = 1.1
"""A gain from here on is worth forecasting."""
COMPUTES_OTHERWISE = ("launch_lstmcell",)
"""The truth is another algorithm with fewer kernels (`nn.LSTM`); the forecast is of the same
kernels, issued at once."""

TRUTH: dict[str, dict[str, Any]] = rows_of("truth.json") or {}
FILES = sorted(path.stem for path in RECORDINGS.glob("*.gpuwatch"))


def test_files_catalogue_and_truth_name_the_same_recordings() -> None:
    catalogue = rows_of("catalogue.json")
    catalogued = sorted(row["name"] for row in catalogue or [])
    assert catalogued == FILES
    assert sorted(TRUTH) == FILES
    assert catalogue is None or catalogue, "a catalogue of nothing tests nothing"
    assert set(FILES) <= set(SCENARIOS)


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_the_measured_truth_is_the_one_that_was_intended(name: str) -> None:
    scenario, truth = SCENARIOS[name], TRUTH[name]
    assert truth["kind"] == scenario["kind"]
    assert truth["sub"] == scenario["sub"]
    assert truth["negative"] == scenario["negative"]
    if scenario["negative"]:
        assert truth["speedup"] < 1.05, "its cause costs something: it is no negative"
    elif scenario["kind"] != "memory-growth":
        assert truth["speedup"] >= 1.10, (
            "its cause costs next to nothing: no verdict would be right"
        )


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_a_recording_ends_in_the_verdict_that_is_true(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(RECORDINGS / f"{name}.gpuwatch"), "--json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["final"] is True
    scenario, verdict = SCENARIOS[name], last["verdict"]
    assert verdict["kind"] in [scenario["kind"], *scenario["also_accept"]], verdict["evidence"]
    if scenario["negative"]:
        assert verdict["severity"] == "info"
    elif TRUTH[name]["speedup"] > WORTH:
        the_forecast_came_true(name, verdict)


def the_forecast_came_true(name: str, verdict: dict[str, Any]) -> None:
    """Within a quarter: the run of the truth was up to 25 % slower than the one recorded."""
    truth = TRUTH[name]["speedup"]
    if verdict["speedup_is"] == "bound":
        assert verdict["speedup"] >= truth * 0.98, "a bound below what was gained"
    if name in COMPUTES_OTHERWISE:
        assert 1.5 < verdict["speedup"] < truth
    else:
        assert 0.75 * truth < verdict["speedup"] < 1.25 * truth
