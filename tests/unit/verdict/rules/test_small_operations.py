"""Many small operations in a loop, on a CPU."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.healthy import healthy
from gpuwatch.tui.verdict.rules.small_operations import (
    MOST_OF_FORWARD,
    OF_FORWARD,
    small_operations_in_a_loop,
)
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.statistics import of_samples
from tests.unit.verdict.windows import even, window

LOOP = "ranking_loss (rows.py:10)"
BACKWARD = FrameShare(
    0.6, "_engine_run_backward (torch/autograd/graph.py:979)", "train (rows.py:18)", "", "backward"
)
CELL = FrameShare(
    *(0.35, "LSTMCell.forward (torch/nn/modules/rnn.py:1757)", "Reader.forward (read.py:13)"),
    phase="forward",
    samples=100,
    in_net=True,
)
PARTS: dict[str, Any] = {"forward_ms": 1.7, "backward_ms": 3.3, "optimizer_ms": 0.2}
"""A batch of 64 rows, one after the other: 520 operations in 5.2 ms."""


def turn(share: float = 0.3, **fields: Any) -> FrameShare:
    given = {"phase": "forward", "in_turns": LOOP, "samples": 100, **fields}
    return FrameShare(share, LOOP, None, "s = scores[i][order]", **given)


def found(
    place: FrameShare, nodes: int = 520, uses: int = 64, parts: Any = PARTS, **given: Any
) -> Finding | None:
    seen = Stacks(100, (place, BACKWARD), 0, (), None, main_unplaced=0.0)
    known = Settings(graph_nodes=nodes, graph_uses=uses, **given)
    return small_operations_in_a_loop(window(even(60, **parts), stacks=seen, settings=known))


def test_small_operations_in_a_loop_are_the_verdict() -> None:
    seen = Stacks(100, (turn(), BACKWARD), 0, (), None, main_unplaced=0.0)
    known = Settings(graph_nodes=520, graph_uses=64)
    judged = Engine().judge(window(even(60, **PARTS), stacks=seen, settings=known)).finding
    assert (judged.kind, judged.sub) == ("launch", "small-operations")
    assert judged.share == pytest.approx(520 * 8e-3 / 5.2 * 63 / 64, rel=0.01)
    assert judged.advice[0].startswith("one tensor expression for the whole batch")
    assert LOOP in judged.advice[0]
    forecast = forecast_of(judged)
    assert forecast is not None
    assert forecast.kind == "at-least"
    assert forecast.speedup == pytest.approx(1 / (1 - 520 * 5e-3 / 5.2 * 63 / 64), rel=0.01)


def test_operations_with_much_to_compute_are_not_held_up_by_their_calls() -> None:
    large = {"forward_ms": 34.0, "backward_ms": 66.0, "optimizer_ms": 0.2}
    assert found(turn(), parts=large) is None


def test_parts_that_fit_into_a_cache_may_be_faster_than_one_call() -> None:
    """1,284 pointwise operations of 77 us each: one call for all took 1.25 times as long."""
    large = {"forward_ms": 55.0, "backward_ms": 44.0}
    part = turn(0.6, in_turns="", in_parts=LOOP, in_net=True)
    assert found(part, nodes=1_284, uses=32, parts=large, graph_added_bytes=9_000_000) is None


def test_gradients_of_each_turn_are_added_up() -> None:
    """A table of 8 MB with 32 turns."""
    part = turn(in_turns="", in_parts=LOOP, in_net=True)
    parts = {"forward_ms": 5.0, "backward_ms": 21.0, "optimizer_ms": 5.0}
    bare = found(part, parts=parts)
    added = found(part, parts=parts, graph_added_bytes=31 * 8_000_000)
    assert bare is not None
    assert added is not None
    lost_ms = 3 * 31 * 8e6 / 40 / 1e6 * 31 / 32
    assert (added.share or 0) - (bare.share or 0) == pytest.approx(lost_ms / 31, rel=0.05)
    assert "are added to those of an earlier turn" in added.evidence[1].text


def test_no_more_is_lost_than_the_net_takes() -> None:
    finding = found(turn(), nodes=20_000)
    assert finding is not None
    assert finding.share == pytest.approx(5.0 / 5.2 * 63 / 64, rel=0.01)


@pytest.mark.parametrize(
    "place",
    [
        turn(in_turns=""),  # no loop: a deep net of small layers
        turn(0.02),  # few of the samples outside the backward: the net holds the others
    ],
)
def test_small_operations_outside_a_loop_accuse_nobody(place: FrameShare) -> None:
    rest = FrameShare(0.3, "Linear.forward (torch/nn/modules/linear.py:134)", None, "", "forward")
    seen = Stacks(100, (place, rest, BACKWARD), 0, (), None, main_unplaced=0.0)
    known = Settings(graph_nodes=520, graph_uses=64)
    seen_steps = window(even(60, **PARTS), stacks=seen, settings=known)
    assert small_operations_in_a_loop(seen_steps) is None
    state = healthy(seen_steps)
    assert state is not None
    assert "520 operations in a step" in state.evidence[1].text
    assert any("more samples in a batch" in one for one in state.advice)


def test_a_loop_beside_larger_operations_takes_what_samples_show_of_it() -> None:
    """SincNet makes each of 80 filters with forty small operations: 15 % of the samples lie in that
    loop, 23 % beside it in a few convolutions. All filters at once gave 2.1x, 9 % was said."""
    rest = FrameShare(0.23, "conv1d (dnn_models.py:73)", None, "", "forward", samples=100)
    seen = Stacks(100, (turn(0.15, in_net=True), rest, BACKWARD), 0, (), None, main_unplaced=0.0)
    parts = {"forward_ms": 35.0, "backward_ms": 58.0, "optimizer_ms": 6.0}
    known = Settings(graph_nodes=3_300, graph_uses=160)
    finding = small_operations_in_a_loop(window(even(60, **parts), stacks=seen, settings=known))
    assert finding is not None
    assert finding.share == pytest.approx(3_300 * 8e-3 / 99 * 159 / 160, rel=0.01)
    few = Stacks(100, (turn(0.05, in_net=True), rest, BACKWARD), 0, (), None, main_unplaced=0.0)
    finding = small_operations_in_a_loop(window(even(60, **parts), stacks=few, settings=known))
    assert finding is not None
    assert finding.share == pytest.approx(0.05 * OF_FORWARD * 159 / 160, rel=0.01)
    # Eight turns in the net are a few operations of 3,300, large or not.
    eight = Settings(graph_nodes=3_300, graph_uses=8)
    finding = small_operations_in_a_loop(window(even(60, **parts), stacks=seen, settings=eight))
    assert finding is not None
    assert (finding.share or 0) < 0.12
    # NCRF++ fills its batches row by row: no operation of the graph is in that loop.
    outside = Stacks(100, (turn(0.15), rest, BACKWARD), 0, (), None, main_unplaced=0.0)
    finding = small_operations_in_a_loop(window(even(60, **parts), stacks=outside, settings=known))
    assert finding is not None
    assert (finding.share or 0) < 0.12


def test_a_loop_within_a_net_takes_no_more_than_its_backward_can() -> None:
    """One sample of 100 in the loop and one beside it, with a backward of 60."""
    rest = FrameShare(0.01, "Linear.forward (linear.py:134)", None, "", "forward", samples=100)
    inside = turn(0.02, in_net=True)
    seen = Stacks(100, (inside, rest, BACKWARD), 0, (), None, main_unplaced=0.0)
    known = Settings(graph_nodes=520, graph_uses=64)
    finding = small_operations_in_a_loop(window(even(60, **PARTS), stacks=seen, settings=known))
    assert finding is not None
    assert finding.share == pytest.approx(0.02 * MOST_OF_FORWARD * 63 / 64)


def test_at_least_is_what_samples_surely_show_of_a_loop_in_a_net() -> None:
    rest = FrameShare(0.23, "conv1d (dnn_models.py:73)", None, "", "forward", samples=100)
    inside = turn(0.08, in_net=True)
    seen = Stacks(100, (inside, rest, BACKWARD), 0, (), None, main_unplaced=0.0)
    parts = {"forward_ms": 35.0, "backward_ms": 58.0, "optimizer_ms": 6.0}
    known = Settings(graph_nodes=3_300, graph_uses=160)
    finding = small_operations_in_a_loop(window(even(60, **parts), stacks=seen, settings=known))
    assert finding is not None
    assert finding.forecast is not None
    lost = of_samples(0.08, 100).low * OF_FORWARD * 159 / 160
    assert finding.forecast.speedup == pytest.approx(1 / (1 - lost))


def test_a_loop_that_fills_the_batch_has_no_operation_in_the_graph() -> None:
    """NCRF++'s `batchify_with_label`: 9 % was said, its rows at once gave 1.02x."""
    line = "words[at, :length] = torch.LongTensor(sentence)"
    assert found(turn()) is not None
    assert found(replace(turn(), line=line)) is None
    weighted = "loss = loss + F.cross_entropy(out[at], y[at], weight=torch.tensor([1.0, 4.0]))"
    assert found(replace(turn(), line=weighted)) is not None


def test_four_heads_of_other_shapes_are_no_loop() -> None:
    assert found(turn(), uses=4) is None


def test_a_net_that_is_called_for_each_row_wants_one_call() -> None:
    finding = found(turn(in_turns="", in_parts=LOOP, in_net=True))
    assert finding is not None
    assert finding.advice[0].startswith("one call of the net for the whole batch")


def test_a_layer_of_lstm_is_one_operation_and_of_gru_it_is_a_loop() -> None:
    finding = found(CELL, parameter_dtype="float32")
    assert finding is not None
    assert finding.advice[0].startswith("nn.LSTM instead of LSTMCell in a loop")
    assert found(CELL, parameter_dtype="float64") is None
    gru = FrameShare(
        *(0.35, "GRUCell.forward (torch/nn/modules/rnn.py:1900)", "Reader.forward (read.py:13)"),
        phase="forward",
        samples=100,
        in_net=True,
    )
    assert found(gru, parameter_dtype="float32") is None


def test_several_backwards_of_a_step_go_through_a_graph_each() -> None:
    """Two batches are accumulated: each backward goes through as many operations."""
    one, two = found(turn(), 200), found(turn(), 200, parts={**PARTS, "backwards": 2})
    assert one is not None
    assert two is not None
    assert (two.share or 0) == pytest.approx(2 * (one.share or 0))
