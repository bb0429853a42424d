"""Nothing wrong, and what the limit is then."""

from typing import Any

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.rules.healthy import healthy
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, run, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_net_in_float64_that_is_the_limit_is_advised_float32() -> None:
    """Products of 512 on two cores: 2.0 times as fast (measured)."""
    rows = even(60, data_ms=0.3, forward_ms=4, backward_ms=6, optimizer_ms=0.8)
    for dtype, first in (("float64", True), ("float32", False)):
        seen = window(rows, settings=Settings(parameter_dtype=dtype, parameter_device="cpu"))
        found = healthy(seen)
        assert found is not None
        assert any("model.float()" in one for one in found.advice) is first


def test_healthy_shows_what_the_limit_is() -> None:
    judged = verdict(window(even(60, **WORK), main_cpu_percent=190.0))
    assert (judged.finding.kind, judged.finding.severity) == ("healthy", "info")
    assert "forward and backward are the limit" in judged.finding.headline
    assert "the training process uses 1.9 of 2 cores" in [e.text for e in judged.finding.evidence]
    assert judged.finding.advice == ()
    idle = verdict(
        window(even(60, **WORK), main_cpu_percent=100.0, machine_cpu_percent=7.0, cores=16.0)
    )
    assert "OMP_NUM_THREADS" in idle.finding.advice[0]


@pytest.mark.parametrize(
    ("threads", "ranks", "advised"),
    [
        (1, 1, 16),
        (None, 1, 16),
        (16, 1, None),
        (24, 1, None),
        (1, 8, 2),
        (2, 8, None),
        (1, 16, None),
    ],
)
def test_no_rank_is_told_to_take_more_than_its_part_of_the_cores(
    threads: int | None, ranks: int, advised: int | None
) -> None:
    """Eight ranks on 16 cores, one thread each, were told to take 16 each."""
    its = Settings(threads=threads, parameter_device="cpu")
    idle = {"main_cpu_percent": 95.0, "machine_cpu_percent": 45.0, "cores": 16.0}
    found = healthy(window(even(60, **WORK), settings=its, world_size=ranks, **idle))
    assert found is not None
    advice = [one for one in found.advice if "set_num_threads" in one]
    assert advice == ([] if advised is None else advice[:1])
    assert advised is None or f"torch.set_num_threads({advised})" in advice[0]


def test_a_quota_is_reported_where_nothing_else_is_wrong() -> None:
    seen = window(even(60, **WORK), cores=2.0, cpu_throttled=0.4, run_delay=0.5)
    finding = verdict(seen).finding
    assert finding.kind == "healthy"
    assert "its CPU quota of 2 cores throttles it 40% of the time" in [
        one.text for one in finding.evidence
    ]
    assert "torch.set_num_threads(2)" in finding.advice[0]
    free = verdict(window(even(60, **WORK), cores=2.0, cpu_throttled=0.0)).finding
    assert not any("quota" in one.text for one in free.evidence)


def test_inference_knows_data_and_forward() -> None:
    parts = {"inference": True, "backwards": 0, "optimizer_steps": 0}
    fine = verdict(window(even(60, data_ms=2, forward_ms=80, **parts)))
    assert fine.finding.headline.endswith("the forward pass is the limit")
    starved = verdict(window(even(60, data_ms=80, forward_ms=20, **parts)))
    assert starved.finding.kind == "input"


def test_an_evaluation_that_came_once_is_not_called_nothing() -> None:
    """ "No cause above 10 %" stood above "evaluation takes 19 %"."""
    rows = run(60, lambda n: {**WORK, "evaluation_ms": 200 if n == 40 else 0})
    found = healthy(window(rows))
    assert found is not None
    assert "but one evaluation so far took" in found.headline
    steady = healthy(window(even(60, **WORK)))
    assert steady is not None
    assert "but one" not in steady.headline


def test_a_line_that_holds_most_of_the_net_is_named() -> None:
    """A GCN's step was 72 % one `F.dropout`, and "forward and backward are the limit" all there
    was to read."""
    drop, call = "dropout (torch/nn/functional.py:1491)", "GCN.forward (gcn.py:36)"
    other = ("Linear.forward (torch/nn/modules/linear.py:134)", "GCN.forward (gcn.py:38)")

    def named(share: float, samples: int) -> list[str]:
        places = (
            FrameShare(share, drop, call, phase="forward", samples=samples),
            FrameShare((1 - share) / 9, *other, phase="forward", samples=samples),
        )
        seen = Stacks(samples, places, 0, (), None)
        found = healthy(window(even(60, **WORK), stacks=seen))
        assert found is not None
        return [one.text for one in found.evidence if one.source == "py-spy"]

    text = f"68 of 95 main-thread samples (72%) are in {drop}, called from {call}"
    assert named(0.72, 95) == [text]
    assert named(0.3, 30) == []  # 18 to 45 % by so few samples


@pytest.mark.parametrize(("share", "named"), [(0.4, True), (0.2, False)])
def test_a_function_that_holds_much_of_the_forward_by_itself_is_where_to_look(
    share: float, named: bool
) -> None:
    """Neighbours of atoms by all pairs of a batch, over four lines: 2.0x and 2.3x by fewer, and
    healthy had nothing to say. What a loss's own line starts is its backward's."""
    mine = [
        FrameShare(share / 4, f"radius_graph (schnet.py:{at})", None, phase="forward", samples=200)
        for at in (33, 34, 36, 37)
    ]
    back = FrameShare(0.4, "train (schnet.py:120)", None, phase="backward", samples=200)
    layers = FrameShare(
        0.1, "Linear.forward (torch/nn/modules/linear.py:1)", "Net.forward (a.py:3)"
    )
    seen = Stacks(200, (back, layers, *mine), 0, (), None)
    found = healthy(window(even(60, **WORK), stacks=seen))
    assert found is not None
    assert any(one.startswith("radius_graph (schnet.py:33)") for one in found.advice) is named
    assert any("radius_graph" in one.text for one in found.evidence) is named


def test_a_net_called_for_each_sample_of_a_batch_is_advised_one_call() -> None:
    """A tutorial's character RNN walks through the names of its batch: with packed sequences 10x,
    and healthy had nothing to say."""
    loop, net = "train (main.py:141)", "CharRNN.forward (main.py:104)"
    rnn = "RNN.forward (torch/nn/modules/rnn.py:745)"

    def advised(in_parts: str) -> tuple[str, ...]:
        place = FrameShare(0.45, rnn, net, phase="forward", samples=95, in_parts=in_parts)
        found = healthy(window(even(60, **WORK), stacks=Stacks(95, (place,), 0, (), None)))
        assert found is not None
        return found.advice

    assert advised("") == ()
    (advice,) = advised(loop)
    assert advice.startswith("one call of the net for the whole batch")
    assert loop in advice


@pytest.mark.parametrize(
    ("known", "advised"),
    [
        ({}, True),
        ({"cpu_bf16": False}, False),
        ({"cpu_bf16": None}, False),
        ({"autocast": "bfloat16"}, False),
        ({"autocast": None}, False),
        ({"graph_nodes": 60}, False),
        ({"graph_nodes": 30}, True),
        ({"parameter_dtype": "bfloat16"}, False),
    ],
)
def test_large_products_on_a_cpu_that_knows_bf16_are_advised_it(
    known: dict[str, Any], advised: bool
) -> None:
    given = {"graph_nodes": 5, "autocast": "", "parameter_dtype": "float32", "cpu_bf16": True}
    seen = window(even(60, **WORK), settings=Settings(**{**given, **known}))
    found = healthy(seen)
    assert found is not None
    assert any("bfloat16" in one for one in found.advice) is advised


@pytest.mark.parametrize(
    ("frame", "line", "advised"),
    [
        ("_conv_forward (torch/nn/modules/conv.py:9)", "x = self.conv(x)", True),
        ("forward (net.py:3)", "x = x @ self.weight", True),
        ("fft2 (torch/fft.py:3)", "x = torch.fft.rfft2(x)", False),
        ("embedding (torch/nn/functional.py:2542)", "self.emb(ids)", False),
        ("scatter (torch_geometric/utils/_scatter.py:30)", "torch.sparse.mm(adj, x)", False),
        ("forward (net.py:30)", "torch.sort(errors, 0, descending=True)", False),
    ],
)
def test_a_net_whose_forward_is_mostly_no_product_is_not_advised_bf16(
    frame: str, line: str, advised: bool
) -> None:
    settings = Settings(
        graph_nodes=5, autocast="", parameter_dtype="float32", parameter_device="cpu", cpu_bf16=True
    )
    linear = "Linear.forward (torch/nn/modules/linear.py:1)"
    places = (
        FrameShare(0.3, frame, None, line, "forward", samples=100, in_net=True),
        FrameShare(0.1, linear, None, "", "forward", samples=100, in_net=True),
    )
    seen = window(even(60, **WORK), settings=settings, stacks=Stacks(100, places, 0, (), None))
    found = healthy(seen)
    assert found is not None
    assert any("bfloat16" in one for one in found.advice) is advised


@pytest.mark.parametrize(
    ("known", "beside", "advised"),
    [
        ({}, "relu (torch/nn/functional.py:9)", "1.1x in the middle"),
        ({"depthwise_filters": 1}, "relu (torch/nn/functional.py:9)", "1.1x in the middle"),
        ({"filters": 1, "depthwise_filters": 17}, "relu (torch/nn/functional.py:9)", "1.3 to 1.7x"),
        ({"filters": 0}, "relu (torch/nn/functional.py:9)", ""),
        ({"breakable_filters": 1}, "relu (torch/nn/functional.py:9)", ""),
        ({"filters": None}, "relu (torch/nn/functional.py:9)", ""),
        ({}, "instance_norm (torch/nn/functional.py:9)", ""),
    ],
)
def test_a_net_of_convolutions_on_a_cpu_is_advised_channels_last(
    known: dict[str, Any], beside: str, advised: str
) -> None:
    conv = "Conv2d._conv_forward (torch/nn/modules/conv.py:9)"

    def found_of(share: float) -> tuple[str, ...]:
        places = (
            FrameShare(share, conv, None, "", "forward", samples=100, in_net=True),
            FrameShare(0.15, beside, None, "", "forward", samples=100, in_net=True),
        )
        settings = Settings(**{"filters": 8, "depthwise_filters": 0, **known})
        stacks = Stacks(100, places, 0, (), None)
        found = healthy(window(even(60, **WORK), settings=settings, stacks=stacks))
        assert found is not None
        return tuple(one for one in found.advice if "channels_last" in one)

    assert [advised in one for one in found_of(0.3)] == [True] * bool(advised)
    assert found_of(0.1) == (), "most of the net is something else"


@pytest.mark.parametrize(
    ("cell", "share", "advised"),
    [("LSTM", 0.2, "1.0 to 2.9x"), ("LSTM", 0.05, ""), ("GRU", 0.2, "1.05 to 1.6x")],
)
def test_large_cells_in_a_loop_are_advised_a_layer(cell: str, share: float, advised: str) -> None:
    """1.36x of a step of 75 ms on one core, whose operations are too large to be a cause; 1.2 and
    1.6x of REINVENT's three layers."""
    frame = f"{cell}Cell.forward (torch/nn/modules/rnn.py:1757)"
    places = (
        FrameShare(share, frame, "Reader.forward (read.py:13)", "", "forward", 100, in_net=True),
        FrameShare(0.5, "cross_entropy (torch/nn/functional.py:9)", None, "", "forward", 100),
    )
    known = Settings(parameter_dtype="float32")
    found = healthy(
        window(even(60, **WORK), settings=known, stacks=Stacks(100, places, 0, (), None))
    )
    assert found is not None
    layers = [one for one in found.advice if one.startswith(f"nn.{cell} instead of {cell}Cell")]
    assert [advised in one for one in layers] == [True] * bool(advised)
