"""The suite as it ran on H200s, judged again: each recording ends in what its scenario means.

Made by `demo/evaluate.py` with 16 cores and a GPU for each run; what was measured without the probe
lies beside each recording, so that `python demo/evaluate.py tests/recordings/suite --again` prints
the table of the README.
"""

from pathlib import Path
from typing import Any

import pytest

from evaluation.catalogue import Expected, scenarios
from evaluation.judging import among_several, truth_of
from evaluation.recording import verdicts_on
from evaluation.reliability import claims_in, levels_of
from evaluation.result import MEASURED, RECORDING, measured_in
from evaluation.verdict_track import Judgement
from gpuwatch.tui.cli.replay import last_snapshot
from gpuwatch.tui.recording.reader import Recording

RECORDINGS = Path(__file__).parents[1] / "recordings"
SUITE = RECORDINGS / "suite"
SCENARIOS = {scenario.name: scenario for scenario in scenarios()}
RUNS = sorted(path.parent.name for path in SUITE.glob(f"*/{MEASURED}"))
MISSED = {"fragmentation.0", "worker_growth.0"}
"""Recorded for 12 s at 8 steps a second, and for 25 s while the workers are read every 10 s: too
short for a word on their memory."""
NOT_RECORDED = {"padding_max_length", "padding_shuffled"}
"""Newer than the last run of the suite on a GPU."""
QUICK = {
    *("launch_lstmcell", "launch_per_sample", "data_and_launch", "sync_mask", "cpu_starved"),
    *("loader_epoch_start", "resnet_bf16", "metrics_each_epoch", "misaligned", "underfilled"),
    *("recompile_shapes", "gan", "anomaly_detection"),
}
"""What was judged wrong when it was new, and what is like it."""
NO_PROBE = RECORDINGS / "no_probe"
WATCHED_FROM_OUTSIDE = sorted(path.parent.name for path in NO_PROBE.glob(f"*/{MEASURED}"))
SEEN_FROM_OUTSIDE = {"input", "host", "checkpoint", "evaluation"}
"""What samples of a stack must be enough for."""
MISTAKEN_FROM_OUTSIDE = {
    "contention.0": "compute",
    "host_growth.0": "compute",
    "leak_losses.0": "compute",
}
"""What they are called instead, for want of the probe's own counts."""


def expected(folder: Path) -> Expected:
    measured = measured_in(folder)
    scenario = SCENARIOS[measured.scenario]
    intended = scenario.expected(gpu=True)
    return among_several(intended, truth_of(scenario, intended, measured))


def one(run: str) -> Any:
    """Among those of `make test`, or of `make suite` alone: half a minute goes by for all."""
    return run if run.removesuffix(".0") in QUICK else pytest.param(run, marks=pytest.mark.suite)


@pytest.mark.parametrize("run", [one(run) for run in sorted(set(RUNS) - MISSED)])
def test_what_was_recorded_is_judged_right_at_its_end(run: str) -> None:
    looks, intended = verdicts_on(SUITE / run / RECORDING), expected(SUITE / run)
    last: Judgement = looks[-1]
    assert last.kind in intended.kinds
    if intended.negative:
        assert not [look for look in looks if look.asks]


def test_the_whole_suite_was_recorded() -> None:
    recorded = {run.removesuffix(".0") for run in RUNS}
    assert recorded == set(SCENARIOS) - NOT_RECORDED
    assert set(RUNS) >= MISSED


@pytest.mark.parametrize("run", WATCHED_FROM_OUTSIDE)
def test_without_the_probe_it_is_right_or_shows_that_it_does_not_know(run: str) -> None:
    looks, intended = verdicts_on(NO_PROBE / run / RECORDING), expected(NO_PROBE / run)
    last: Judgement = looks[-1]
    if intended.negative:
        assert not [look for look in looks if look.asks]
    elif SEEN_FROM_OUTSIDE & set(intended.kinds):
        assert last.kind in intended.kinds
    else:
        mistaken = MISTAKEN_FROM_OUTSIDE.get(run)
        assert last.kind in ([mistaken] if mistaken else (*intended.kinds, "incomplete"))


def test_a_rank_that_waits_for_another_names_it() -> None:
    """Four ranks with NCCL, of which rank 2 loads slowly: rank 0's GPU spins all the time."""
    verdict = last_snapshot(Recording(RECORDINGS / "ranks.gpuwatch")).verdict
    assert verdict.finding.kind == "straggler"
    assert verdict.finding.headline.startswith("rank 2 waits for its loader: the other 3 wait")
    assert "waiting for data" in verdict.finding.evidence[0].text
    assert "all others spin in collectives" in verdict.finding.evidence[1].text


@pytest.mark.suite
@pytest.mark.parametrize("folder", [SUITE, NO_PROBE], ids=["probe", "no probe"])
def test_what_is_reported_to_be_likely_is_right_as_often(folder: Path) -> None:
    """On the half of the scenarios that no constant was chosen by: of what was 90 % sure nine in
    ten are right, and nothing is a headline below one half."""
    looks = [one for one in claims_in(folder) if one.half == "report"]
    assert min(one.confidence for one in looks) >= 0.5
    for level in levels_of(looks):
        if level.begins >= 0.8 and level.runs >= 10:
            assert level.right >= level.begins
