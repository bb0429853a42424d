"""A CUDA graph of the whole step, beside one of the net."""

from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, stacks

EACH: Final = {"data_ms": 0.05, "forward_ms": 1.7, "backward_ms": 1.7, "optimizer_ms": 1.2}


def test_a_graph_of_the_whole_step_is_named_where_it_gives_much_more() -> None:
    """DeepFM on an H200: 1.6x by a graph of the net was all that was said; one of its whole step
    gave 2.1x. Where the GPU is the limit soon, both give the same."""
    adam = settings(optimizer="AdamW")
    for busy, named in ((12.0, True), (55.0, False)):
        seen = gpu_window(even(400, **EACH), EACH, activity=activity(busy, sm=2.0), settings=adam)
        found = launch(seen)
        assert found is not None
        forecast = forecast_of(found)
        assert forecast is not None
        assert forecast.high is not None
        whole = "whole step with its optimizer (capturable=True), about 7.6x"
        assert (whole in found.advice[0]) is named
        assert (forecast.high > 7.6) is named


@pytest.mark.parametrize(
    ("optimizer", "how"),
    [("SGD", "optimizer, about"), (None, "optimizer (capturable=True, if it has that), about")],
    ids=["SGD", "compiled"],
)
def test_what_counts_no_steps_is_not_asked_to_count_them_on_the_gpu(
    optimizer: str | None, how: str
) -> None:
    """`capturable=True` is an unexpected keyword argument there."""
    its = settings(optimizer=optimizer)
    found = launch(gpu_window(even(400, **EACH), EACH, activity=activity(12.0), settings=its))
    assert found is not None
    assert f"whole step with its {how}" in found.advice[0]


def test_a_second_backward_now_and_then_is_no_micro_batch() -> None:
    """A penalty on the gradients every 16 steps: the advice came and went with the window."""
    rows = even(400, **EACH)
    rows[200] = structs.replace(rows[200], backwards=2)
    found = launch(gpu_window(rows, EACH, activity=activity(12.0, sm=2.0)))
    assert found is not None
    assert "whole step" in found.advice[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"settings": settings(scaler=True)},
        {"settings": settings(optimizer="Adagrad")},
        {"settings": settings(optimizer="Lion")},
        {"world_size": 8},
        {"stacks": replace(stacks(), framework="transformers")},
        {"stacks": replace(stacks(), loop_of="/x-packages/stable_baselines3/")},
        {"steps": tuple(even(400, **EACH, backwards=8))},
    ],
    ids=[
        "a GradScaler",
        "Adagrad",
        "Lion",
        "ranks",
        "a loop that is known",
        "a library's loop",
        "micro-batches",
    ],
)
def test_a_step_that_no_graph_holds_is_not_promised_one(fields: dict[str, Any]) -> None:
    seen = gpu_window(even(400, **EACH), EACH, activity=activity(12.0, sm=2.0))
    plain, found = launch(seen), launch(replace(seen, **fields))
    assert plain is not None
    assert found is not None
    assert "whole step" in plain.advice[0]
    assert "whole step" not in found.advice[0]
    most = forecast_of(found)
    assert most is not None
    assert most.high is not None
    assert most.high < 6


@pytest.mark.parametrize(
    "replays",
    ["CUDAGraph.replay (torch/cuda/graphs.py:139)", "run (torch/_inductor/cudagraph_trees.py:9)"],
)
def test_a_net_that_is_replayed_as_a_graph_is_not_told_to_become_one(replays: str) -> None:
    """An encoder on an H200, whose loss and optimizer were launched one by one: 2.8x by a graph of
    the whole step, and the advice was torch.compile(model, mode="reduce-overhead")."""
    given = {"activity": activity(12.0, sm=2.0), "settings": settings(optimizer="AdamW")}
    backward = FrameShare(0.03, replays, None, samples=100)
    seen = gpu_window(
        even(400, **EACH), EACH, stacks=Stacks(100, (), 0, (), None, threads=(backward,)), **given
    )
    found = launch(seen)
    assert found is not None
    whole = "a CUDA graph of the whole step with its optimizer (capturable=True), about 7.6x"
    assert found.advice[0] == f"{whole}: its net alone is one already"
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(7.6, abs=0.1)
    asks = replace(backward, frame="is_current_stream_capturing (torch/cuda/graphs.py:50)")
    adam = launch(replace(seen, stacks=Stacks(100, (asks,), 0, (), None)))
    assert adam is not None
    assert "already" not in adam.advice[0], "an optimizer asks whether a graph is being captured"
    in_parts = [structs.replace(row, backwards=4) for row in seen.steps]
    batches = launch(replace(seen, steps=tuple(in_parts)))
    assert batches is not None
    assert batches.advice[0].startswith("a larger batch"), "no graph holds micro-batches"
    assert batches.speedup_is == "bound"
