"""From what was measured and recorded to a result; it may be made again at any time."""

import json
import re
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from evaluation.baselines import host_wait_share, nvidia_smi
from evaluation.catalogue import Expected, Scenario
from evaluation.data_wait import data_wait
from evaluation.recording import RecordedSignals, signals_in, verdicts_on
from evaluation.result import (
    FETCHES,
    OURS,
    RECORDING,
    RESULT,
    TRACEML,
    Measured,
    Result,
    keep,
)
from evaluation.score import Begun, Score, score
from evaluation.truth import Truth, constructed_truth, measured_truth
from evaluation.verdict_track import Judgement
from gpuwatch.tui.verdict.window_selection import warm_after


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
    signals = signals_in(folder / RECORDING)
    intended = scenario.expected(signals.gpu is not None)
    truth = truth_of(scenario, intended, measured)
    expected = among_several(intended, truth)
    tracks = {OURS: verdicts_on(folder / RECORDING), **baselines(folder, signals)}
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


def among_several(intended: Expected, truth: Truth) -> Expected:
    """Of several causes, those that are worth removing first by measurement."""
    if not truth.gains:
        return intended
    kinds = [*truth.nearly_best(), *(kind for kind in intended.kinds if kind not in truth.gains)]
    sub = intended.sub if kinds[0] == intended.kinds[0] else None
    return replace(intended, kinds=tuple(kinds), sub=sub)


def samples_per_s(reports: Sequence[dict[str, float]]) -> list[float]:
    """Of each, in their order."""
    return [report["samples_per_s"] for report in reports]


def baselines(folder: Path, signals: RecordedSignals) -> dict[str, list[Judgement]]:
    """What the other tools reported on the same run."""
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


def line_of(result: Result) -> str:
    """What is true, what was reported, and whether that is right."""
    true = f"{result.kinds[0]}/{result.sub}" if result.sub else result.kinds[0]
    gain = "by construction" if result.truth.by_construction else f"gain {result.truth.gain:.2f}"
    ours = result.tools.get(OURS)
    if ours is None:
        return f"{result.name:32} {true:22} {gain:16} reported nothing"
    reported = f"{ours.kind}/{ours.sub}" if ours.sub else ours.kind
    forecast = f" {ours.forecast_is} {ours.forecast:.2f}" if ours.forecast else ""
    right = "right" if ours.right else "WRONG"
    doubt = "" if result.truth.agrees else f"  truth: {result.truth.label}"
    return f"{result.name:32} {true:22} {gain:16} {right}  {reported}{forecast}{doubt}"
