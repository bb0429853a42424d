"""A recording of an H200 and what was measured become a result, and the same one every time."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.catalogue import ROOT, scenarios
from evaluation.judging import action_is_the_switch, among_several, result_of, truth_of
from evaluation.result import OURS, RECORDING, RESULT, Measured, Result, keep, results_in
from tests.unit.evaluation.examples import score_with

RECORDINGS = ROOT / "demo" / "recordings"


def judged(name: str, folder: Path, gain: float) -> Result:
    """The result of a recording, had its cause that gain."""
    shutil.copy(RECORDINGS / f"{name}.gpuwatch", folder / RECORDING)
    slow = {"steps_per_s": 10.0, "samples_per_s": 100.0}
    fast = {"steps_per_s": 10.0 * gain, "samples_per_s": 100.0 * gain}
    watched = {"steps_per_s": 9.9}
    measured = Measured(name, 0, 1.0, 16, 60.0, watched, [slow, slow], [fast, fast])
    (scenario,) = scenarios(name)
    return result_of(scenario, measured, folder)


def test_a_hidden_wait_distinguishes_the_tools(tmp_path: Path) -> None:
    result = judged("hidden_wait", tmp_path, gain=1.0)
    assert result.gpu == "NVIDIA H200"
    assert result.truth.agrees
    ours, theirs = result.tools[OURS], result.tools["host-wait share"]
    assert ours.right
    assert not ours.false_alarm
    assert theirs.false_alarm
    assert theirs.forecast is not None
    assert theirs.forecast > 1.2, "it promises what the measured gain of 1.00 does not hold"
    assert "nvidia-smi" in result.tools


def test_a_bottleneck_is_scored_with_its_forecast_and_cost(tmp_path: Path) -> None:
    result = judged("loader_workers", tmp_path, gain=5.0)
    ours = result.tools[OURS]
    assert ours.right
    assert ours.sub_right
    assert ours.first_right_steps is not None
    assert ours.forecast is not None
    assert result.cost == pytest.approx(0.01)
    assert result.step_ms == pytest.approx(100.0)
    assert result.data_wait is None, "on a GPU the host's wait is not the truth"


def test_a_cause_that_comes_late_is_judged_at_the_end_where_nobody_counts_steps(
    tmp_path: Path,
) -> None:
    without_probe = ROOT / "tests" / "recordings" / "no_probe"
    shutil.copy(without_probe / "loader_workers.0" / "recording.gpuwatch", tmp_path / RECORDING)
    rates = {"steps_per_s": 10.0, "samples_per_s": 100.0}
    fast = {"steps_per_s": 20.0, "samples_per_s": 200.0}
    (late,) = scenarios("loader_slows")
    assert late.from_step
    measured = Measured("loader_slows", 0, 1.0, 16, 60.0, rates, [rates], [fast], probe=False)
    result = result_of(late, measured, tmp_path)
    assert result.tools[OURS].right
    assert not result.probe


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "loader_workers.0"
    folder.mkdir()
    result = judged("loader_workers", folder, gain=5.0)
    keep(folder / RESULT, result)
    assert results_in(tmp_path) == [result]


def test_the_first_advice_is_the_switch_or_not() -> None:
    (scenario,) = scenarios("loader_workers")
    scenario = type(scenario)(**{**vars(scenario), "first_action": r"num_workers 2 → \d+"})
    expected = scenario.expected(gpu=True)
    assert action_is_the_switch(scenario, expected, score_with(advice="num_workers 2 → 9"))
    assert action_is_the_switch(scenario, expected, score_with(advice="a faster disk")) is False
    wrong = score_with(advice="num_workers 2 → 9", right=False)
    assert action_is_the_switch(scenario, expected, wrong) is False
    unasked = type(scenario)(**{**vars(scenario), "first_action": None})
    assert action_is_the_switch(unasked, expected, score_with()) is None


def test_of_several_causes_the_measurement_shows_which_is_right() -> None:
    (scenario,) = scenarios("loader_workers")
    mixed = type(scenario)(**{**vars(scenario), "causes": ["input", "sync", "launch"]})
    slow, fast = {"samples_per_s": 100.0}, {"samples_per_s": 130.0}
    others = {"sync": [{"samples_per_s": 132.0}], "launch": [{"samples_per_s": 105.0}]}
    measured = Measured("mixed", 0, 1.0, 16, 60.0, slow, [slow], [fast], others)
    intended = mixed.expected(gpu=True)
    truth = truth_of(mixed, intended, measured)
    assert truth.gains == {"input": 1.3, "sync": 1.32, "launch": 1.05}
    assert truth.gain_of("sync") == 1.32
    assert among_several(intended, truth).kinds == ("input", "sync")
    worse = truth_of(mixed, intended, replace(measured, fast=[{"samples_per_s": 110.0}]))
    found = among_several(intended, worse)
    assert found.kinds == ("sync",), "the main cause was not worth removing first"
    assert found.sub is None
