"""A linear layer that is called again and again for a few rows, on a CPU."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.settings import RepeatedLayer, Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.repeated_layer import repeated_layer
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, window

SCORES = FrameShare(
    *(0.3, "Linear.forward (torch/nn/modules/linear.py:134)", "Decoder.forward (model.py:184)"),
    phase="forward",
    samples=100,
    in_net=True,
)
VOCABULARY = RepeatedLayer(calls=61, rows=8, inputs=256, outputs=5_000)


def seen(
    layer: RepeatedLayer | None = VOCABULARY, dtype: str = "float32", **place: Any
) -> StepWindow:
    """5.1 MB, 60 times: 61 ms of 310, and 38 at the least."""
    places = (
        replace(SCORES, **place),
        replace(SCORES, share=0.1, caller="Decoder.forward (model.py:9)"),
    )
    return window(
        even(60, forward_ms=120, backward_ms=180, optimizer_ms=10),
        stacks=Stacks(100, places, 0, (), None, main_unplaced=0.0),
        settings=Settings(repeated_layer=layer, parameter_dtype=dtype),
    )


def found_of(given: StepWindow) -> Finding:
    found = repeated_layer(given)
    assert found is not None
    return found


def test_a_layer_that_no_turn_waits_for_is_the_verdict() -> None:
    found = found_of(seen())
    assert found.headline == (
        "a layer of 256 to 5,000 is called 61 times in a step, for 8 rows each"
    )
    assert found.share == pytest.approx(60 * 5.12e6 / 5.0 / 310e6)
    assert found.forecast is not None
    assert found.forecast.kind == "at-least"
    assert found.forecast.speedup == pytest.approx(1 / (1 - 60 * 5.12e6 / 8.0 / 310e6))
    assert found.advice[0].endswith("or behind it"), "two lines call linear layers"
    judged = Engine().judge(seen()).finding
    assert (judged.kind, judged.sub) == ("launch", "repeated-layer")


def test_a_loop_over_parts_of_a_batch_is_one_call_of_the_net() -> None:
    found = found_of(seen(in_parts="train (train.py:9)"))
    assert found.advice[0].startswith("one call of the net for the whole batch")


@pytest.mark.parametrize(
    "layer",
    [
        None,
        RepeatedLayer(calls=61, rows=64, inputs=256, outputs=5_000),
        RepeatedLayer(calls=61, rows=8, inputs=256, outputs=500),
        RepeatedLayer(calls=5, rows=8, inputs=256, outputs=5_000),
    ],
    ids=["none", "its arithmetic takes as long", "a small weight", "a few calls"],
)
def test_other_layers_are_left(layer: RepeatedLayer | None) -> None:
    assert repeated_layer(seen(layer)) is None


def test_what_the_next_turn_chooses_from_the_scores_has_no_gradient() -> None:
    assert repeated_layer(seen(chooses=True)) is None


def test_a_cell_cannot_be_split() -> None:
    cell = "LSTMCell.forward (torch/nn/modules/rnn.py:9)"
    assert repeated_layer(seen(frame=cell)) is None


def test_of_another_type_nothing_was_measured() -> None:
    assert repeated_layer(seen(dtype="bfloat16")) is None


def test_on_a_gpu_launches_are_what_such_a_loop_costs() -> None:
    assert repeated_layer(replace(seen(), gpu_present=True)) is None
