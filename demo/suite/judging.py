"""From what was measured and recorded to a result; it may be made again at any time."""

import json
import re
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from gpuwatch.tui.verdict.window_selection import warm_after
from suite.baselines import host_wait_share, nvidia_smi
from suite.catalogue import Expected, Scenario
from suite.data_wait import data_wait
from suite.heard import Heard, heard
from suite.lines import line_of
from suite.result import (
    FETCHES,
    OURS,
    RECORDING,
    RESULT,
    TRACEML,
    Measured,
    Result,
    keep,
)
from suite.said import said_on
from suite.score import Begun, Score, score
from suite.track import Judgement
from suite.truth import Truth, constructed_truth, measured_truth


def judge(scenario: Scenario, measured: Measured, folder: Path) -> str:
    """Keep the result of a run; returns the line that says what came out.

    A rule that breaks on one run is named, and the others are judged: what was measured is kept,
    and so nothing has to be run again.
    """
    (folder / RESULT).unlink(missing_ok=True)
    try:
        result = result_of(scenario, measured, folder)
    except Exception as error:
        traceback.print_exc()
        return f"{folder.name:32} NOT JUDGED {type(error).__name__}: {error}"
    keep(folder / RESULT, result)
    return line_of(result)


def result_of(scenario: Scenario, measured: Measured, folder: Path) -> Result:
    """What the files of a run come to."""
    signals = heard(folder / RECORDING)
    meant = scenario.expected(signals.gpu is not None)
    truth = truth_of(scenario, meant, measured)
    expected = among_several(meant, truth)
    tracks = {OURS: said_on(folder / RECORDING), **baselines(folder, signals)}
    # Without the probe nobody counts steps: such a run is judged at its end.
    cause = scenario.from_step if measured.probe else 0
    begun = Begun(signals.begun_step, warm_after(signals.steps), cause)
    scores = {name: score(looks, expected, begun) for name, looks in tracks.items()}
    tools = {name: each for name, each in scores.items() if each is not None}
    if OURS not in tools:
        raise ValueError("the recording ends before its cause begins")
    rates = [report["steps_per_s"] for report in measured.slow]
    fetches = folder / FETCHES
    return Result(
        scenario=scenario.name,
        seed=measured.seed,
        scale=measured.scale,
        gpu=signals.gpu,
        torch=signals.torch,
        negative=expected.negative,
        kinds=list(expected.kinds),
        sub=expected.sub,
        family=scenario.family,
        half=scenario.half,
        seconds=measured.seconds,
        others_cores=signals.others_cores,
        truth=truth,
        step_ms=1_000 / median(rates),
        cost=None if measured.bare_before else 1 - measured.watched["steps_per_s"] / median(rates),
        cost_noise=(max(rates) - min(rates)) / median(rates),
        data_wait=data_wait(
            signals.steps, json.loads(fetches.read_text()), warm_after(signals.steps)
        )
        if fetches.exists()
        else None,
        action_is_the_switch=action_is_the_switch(scenario, expected, tools[OURS]),
        tools=tools,
        probe=measured.probe,
    )


def truth_of(scenario: Scenario, expected: Expected, measured: Measured) -> Truth:
    """What the cause costs, where that can be measured; on this machine the switch may be moot."""
    if not scenario.costs_time:
        return constructed_truth(expected.negative)
    slow, fast = samples_per_s(measured.slow), samples_per_s(measured.fast)
    truth = measured_truth(slow, fast, expected.negative)
    if not measured.others:
        return truth
    rates = {kind: samples_per_s(reports) for kind, reports in measured.others.items()}
    others = {kind: median(each) / median(slow) for kind, each in rates.items()}
    return replace(truth, gains={scenario.causes[0]: truth.gain, **others})


def among_several(meant: Expected, truth: Truth) -> Expected:
    """Of several causes, those that are worth removing first by measurement."""
    if not truth.gains:
        return meant
    kinds = [*truth.nearly_best(), *(kind for kind in meant.kinds if kind not in truth.gains)]
    sub = meant.sub if kinds[0] == meant.kinds[0] else None
    return replace(meant, kinds=tuple(kinds), sub=sub)


def samples_per_s(reports: Sequence[dict[str, float]]) -> list[float]:
    """Of each, in their order."""
    return [report["samples_per_s"] for report in reports]


def baselines(folder: Path, signals: Heard) -> dict[str, list[Judgement]]:
    """What the other tools said on the same run."""
    tracks: dict[str, list[Judgement]] = {
        "host-wait share": list(host_wait_share(signals.steps, signals.began_ns)),
        "nvidia-smi": list(nvidia_smi(signals.utilization, signals.steps, signals.began_ns)),
    }
    if (folder / TRACEML).exists():
        tracks["TraceML"] = [Judgement(**row) for row in json.loads((folder / TRACEML).read_text())]
    return tracks


def action_is_the_switch(scenario: Scenario, expected: Expected, ours: Score) -> bool | None:
    """Whether who follows the first advice does what was measured as the fix."""
    if scenario.first_action is None or expected.negative:
        return None
    advice = ours.advice if ours.right and ours.advice else ""
    return re.search(scenario.first_action, advice, re.I) is not None
