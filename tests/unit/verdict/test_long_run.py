"""Causes of the window's steps as parts of the run's time."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding, Forecast, Kind
from gpuwatch.tui.verdict.idle_ledger import idle_ledger
from gpuwatch.tui.verdict.long_run import (
    in_the_long_run,
    ledger_in_the_long_run,
    left_by_pauses,
)
from gpuwatch.tui.verdict.rules.checkpoint import checkpoint
from gpuwatch.tui.verdict.scoring import cause
from gpuwatch.tui.verdict.statistics import Share
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import run, stacks, window

STEP = {"data_ms": 0.1, "forward_ms": 2.0, "backward_ms": 1.5, "optimizer_ms": 0.4}
EVERY = 40


def saving(newest: int = 0) -> StepWindow:
    """A checkpoint of 160 ms in each fortieth step of 4 ms: half of the time. `newest`: the window
    was cut so few steps ago."""
    rows = run(400, lambda n: {**STEP, "checkpoint_ms": 160 if n % EVERY == 1 else 0})
    seen = window(rows)
    return replace(seen, steps=tuple(rows[-newest:])) if newest else seen


def launching(share: float, speedup: float | None = None) -> Finding:
    found = cause("launch", None, Share(share, share - 0.05, share + 0.05), "it waits", (), ())
    forecast = None if speedup is None else Forecast(speedup, 1.5, None)
    return replace(found, speedup=speedup or found.speedup, forecast=forecast)


def of_run(seen: StepWindow, found: Finding) -> Finding:
    both = {"checkpoint": checkpoint(seen), found.kind: found}
    all_of_it = in_the_long_run(both, left_by_pauses(both, seen))
    judged = all_of_it[found.kind]
    assert judged is not None
    return judged


def test_a_window_without_the_runs_checkpoints_shows_twice_as_much_of_the_rest() -> None:
    found = of_run(saving(newest=30), launching(0.6, speedup=2.5))
    saves = checkpoint(saving())
    assert saves is not None
    assert saves.share is not None
    left = 1 - saves.share
    assert 0.45 < left < 0.55
    assert found.share == pytest.approx(0.6 * left, abs=0.01)
    assert found.share_low == pytest.approx(0.55 * left, abs=0.01)
    assert found.speedup == pytest.approx(1 / (1 - left * 0.6), rel=0.02)
    assert found.forecast is not None
    assert found.forecast.low == pytest.approx(1 / (1 - left / 3), rel=0.02)
    assert found.forecast.high is None
    assert found.headline.endswith("% of the run's time)")


@pytest.mark.parametrize("kind", ["launch", "memory-growth", "checkpoint"])
def test_what_is_known_of_the_run_stays_as_it_is(kind: Kind) -> None:
    """The window holds as many of the pauses, or the finding is not of the window's steps."""
    whole, cut = saving(), saving(newest=30)
    seen = whole if kind == "launch" else cut
    found = checkpoint(cut) if kind == "checkpoint" else replace(launching(0.4), kind=kind)
    assert found is not None
    assert of_run(seen, found) == found


def test_pauses_that_no_mark_shows_are_in_the_window_too() -> None:
    rows = run(200, lambda n: STEP)
    shown = cause("evaluation", None, Share(0.4, 0.3, 0.5), "by samples", (), ())
    assert left_by_pauses({"evaluation": shown}, window(rows)) == 1.0


def test_launches_between_two_checkpoints_are_no_verdict_over_them() -> None:
    """Behind a change of pace the newest 30 steps hold no checkpoint: "launch, 74 %" was the
    verdict where those took half of the time. Without them the run was 2.06x as fast, as a graph
    1.29x."""
    rows = run(400, lambda n: {**STEP, "checkpoint_ms": 160 if n % EVERY == 1 else 0})
    on_gpu = {"forward_ms": 2.0, "backward_ms": 1.5, "optimizer_ms": 0.4, "lag_ms": 0.01}
    forward = stacks([(0.97, "forward (model.py:12)", None)])
    seen = gpu_window(rows, on_gpu, activity=activity(25.0), stacks=forward)
    cut = tuple(rows[-30:])
    measured = tuple(row for row in seen.gpu_steps if row.number > cut[0].number)
    cut_off = replace(seen, steps=cut, gpu_steps=measured)
    found = Engine().judge(cut_off)
    assert found.finding.kind == "checkpoint"
    assert found.contributors[0].kind == "launch"
    assert sum(one.share or 0.0 for one in (found.finding, *found.contributors)) <= 1.0
    window_ledger = idle_ledger(cut_off)
    assert window_ledger is not None
    assert window_ledger.shares["launch"] > 0.7
    named = {one.kind: one for one in (found.finding, *found.contributors)}
    ledger = ledger_in_the_long_run(window_ledger, named, cut_off)
    assert sum(ledger.shares.values()) == pytest.approx(1.0)
    assert ledger.shares["pauses"] == pytest.approx(found.finding.share, abs=0.02)
    assert ledger.shares["launch"] == pytest.approx(found.contributors[0].share, abs=0.02)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "num_workers 0 → 2, about 1.5x (a batch takes 20 ms)",
            "num_workers 0 → 2 (a batch takes 20 ms)",
        ),
        ("bf16, about 1.4x: torch.autocast", "bf16: torch.autocast"),
        ("bf16, 1.5x or more: torch.autocast", "bf16: torch.autocast"),
        ("tf32, one line: a.b = c, about >10x", "tf32, one line: a.b = c"),
        (
            "pin_memory=True: copies run up to 9.3x faster",
            "pin_memory=True: copies run up to 9.3x faster",
        ),
    ],
)
def test_an_action_has_one_forecast_and_that_is_the_runs(text: str, left: str) -> None:
    found = of_run(saving(newest=30), replace(launching(0.6), advice=(text,)))
    assert found.advice == (left,)


@pytest.mark.parametrize("copy_ms", [0, 60, 120])
def test_what_clings_to_a_pause_is_in_the_window_with_it(copy_ms: int) -> None:
    """A copy or an fsync beside each save counts with it, though no mark has it: a window that
    holds all of them is no part of the run."""
    rows = run(
        200,
        lambda n: {
            **STEP,
            "checkpoint_ms": 120 if n % 10 == 0 else 0,
            "other_ms": copy_ms if n % 10 == 0 else 0,
        },
    )
    seen = window(rows)
    assert left_by_pauses({"checkpoint": checkpoint(seen)}, seen) == pytest.approx(1.0, abs=0.01)


def test_time_in_no_phase_is_a_part_of_the_run_beside_causes_that_are() -> None:
    """A third of the window's steps, which hold no checkpoint, is in no phase, and more is the wait
    for data: "36% of the time is in no phase" led, beside that wait with 33 % of the run."""
    parts = {"data_ms": 2.4, "forward_ms": 0.6, "backward_ms": 0.5, "unknown_ms": 2.0}
    rows = run(400, lambda n: {**parts, "checkpoint_ms": 80 if n % EVERY == 1 else 0})
    cut = replace(window(rows), steps=tuple(rows[-30:]))
    assert 1 - cut.attributed == pytest.approx(0.36, abs=0.01)
    assert Engine().judge(cut).finding.kind == "input"
