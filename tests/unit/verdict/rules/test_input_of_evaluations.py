"""Batches that are made for evaluations as well."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.evaluation import evaluation
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import gpu_window
from tests.unit.verdict.windows import loader, run, window

MS = 1_000_000
STEP: dict[str, Any] = {"data_ms": 8, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 1}
RUN_MS = 20 * 18 + 400
"""Twenty steps and an evaluation, of which 300 ms wait for its batches."""


def evaluated(n: int, data_ms: int = 300) -> dict[str, Any]:
    at = n % 20 == 0
    return {
        **STEP,
        "evaluation_ms": 400 if at else 0,
        "evaluation_data_ns": data_ms * MS if at else 0,
    }


def seen(workers: int = 0, data_ms: int = 300, **fields: Any) -> StepWindow:
    rows = run(200, lambda n: evaluated(n, data_ms))
    given = {"evaluation": True, "num_workers": workers, **fields}
    return window(rows, loaders=(loader(workers),), evaluation_loaders=(loader(**given),))


def found_in(seen: StepWindow) -> Finding:
    found = input_bound(seen)
    assert found is not None
    return found


def test_batches_of_an_evaluation_are_input_too() -> None:
    """Lists padded item by item, in both: evaluation 57 % was the verdict, and padding them once
    gave 3.9x."""
    found = found_in(seen())
    training, evaluations = 20 * 8 / RUN_MS, 300 / RUN_MS
    assert found.share == pytest.approx(training + evaluations, abs=0.03)
    assert found.headline == (
        "waiting for data takes 62% of the time: 20% in training, 42% in evaluations"
    )
    assert found.advice[0].startswith("make batches cheaper"), "workers serve the training's alone"
    forecast = forecast_of(found)
    assert forecast is not None
    assert forecast.low < 1 / (1 - training - evaluations) < (forecast.high or 0)
    judged = Engine().judge(seen())
    assert judged.finding.kind == "input"
    assert sum(one.share or 0 for one in (judged.finding, *judged.contributors)) <= 1


@pytest.mark.parametrize(
    "fields", [{"dataset": "Held"}, {"num_workers": 2}, {"data_ms": 0}, {"data_ms": 20}]
)
def test_others_are_the_evaluations_alone(fields: dict[str, Any]) -> None:
    """Another dataset, one made by workers, or hardly any wait."""
    found = found_in(seen(**fields))
    assert found.share == pytest.approx(20 * 8 / RUN_MS, abs=0.02)
    assert "evaluations" not in found.headline


def test_behind_a_wait_of_the_host_a_gpu_may_be_at_work() -> None:
    rows = run(200, evaluated)
    held_out = loader(0, evaluation=True)
    both = gpu_window(rows, STEP, loaders=(loader(0),), evaluation_loaders=(held_out,))
    alone = gpu_window(rows, STEP, loaders=(loader(0),))
    found, without = found_in(both), found_in(alone)
    assert found.share_low == pytest.approx(without.share_low)
    assert (found.share or 0) > (without.share or 0) + 0.3


def test_an_evaluation_that_waits_for_its_loader_shows_it() -> None:
    found = evaluation(seen())
    assert found is not None
    assert "75% of it waits for batches of its loader" in [one.text for one in found.evidence]
    assert found.advice[1].startswith("make its batches once and keep them")
    quick = evaluation(seen(data_ms=100))
    assert quick is not None
    assert not quick.advice[1].startswith("make its batches")
