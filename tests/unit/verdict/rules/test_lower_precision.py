"""What products in a smaller type would give: bf16 for tf32, tf32 for fp32."""

from dataclasses import replace

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.compute import KERNELS, in_fp32
from gpuwatch.tui.verdict.rules.gpu_work import Work, half_type, precision
from tests.unit.verdict.noted import lines, settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even

STEPS = even(60, data_ms=0.1, forward_ms=3, backward_ms=5, optimizer_ms=1)

BEHIND = {"forward_ms": 3, "backward_ms": 5.5, "optimizer_ms": 0.6, "lag_ms": 60}


def test_full_tensor_cores_in_tf32_could_be_faster_in_bf16() -> None:
    """A GPT on an H200: 2.33x."""
    counters = activity(99, sm=89, tensor=41, fp32=5, dram=24)
    known = settings(matmul_precision="high", autocast="", parameter_dtype="float32")
    found = Engine().judge(gpu_window(STEPS, BEHIND, activity=counters, settings=known)).finding
    assert (found.kind, found.sub) == ("compute", "precision")
    assert found.speedup == pytest.approx(1.93, abs=0.03)
    assert found.forecast is not None
    assert found.forecast.low < 2.33 < (found.forecast.high or 0.0)
    # Three runs without an optimizer, whose type nobody had seen: 2.03x, 2.33x and 2.37x.
    unknown = structs.replace(known, parameter_dtype=None)
    found = Engine().judge(gpu_window(STEPS, BEHIND, activity=counters, settings=unknown)).finding
    assert found.sub == "precision"
    for other in (
        structs.replace(known, parameter_dtype="bfloat16"),
        structs.replace(unknown, matmul_precision="highest"),
    ):
        found = Engine().judge(gpu_window(STEPS, BEHIND, activity=counters, settings=other)).finding
        assert (found.sub, found.advice) == ("saturated", ())


@pytest.mark.parametrize(("update_ms", "speedup"), [(2, 1.98), (30, 1.55), (40, 1.44)])
def test_an_update_stays_in_fp32(update_ms: float, speedup: float) -> None:
    """By the replay every kernel of the net in half its time gives 1.96, 1.54 and 1.43x."""
    net_ms = 100 - update_ms
    rows = even(60, data_ms=0.1, forward_ms=5, backward_ms=7, optimizer_ms=2, other_ms=85.9)
    on_gpu = {"forward_ms": net_ms / 3, "backward_ms": net_ms * 2 / 3, "optimizer_ms": update_ms}
    counters = activity(
        99, sm=90, tensor=0.5 * net_ms, fp32=1, dram=0.33 * net_ms + 0.88 * update_ms
    )
    known = settings(autocast="", matmul_precision="high", parameter_dtype="float32")
    seen = gpu_window(rows, {**on_gpu, "lag_ms": 0.01}, activity=counters, settings=known)
    found = in_fp32(seen)
    assert found is not None
    assert found.speedup == pytest.approx(speedup, abs=0.1)


CONVOLUTION = (0.3, "Conv2d._conv_forward (torch/nn/modules/conv.py:560)", "")
RECURRENT = (0.3, "LSTM.forward (torch/nn/modules/rnn.py:1124)", "")


@pytest.mark.parametrize(
    ("place", "given", "speedup"),
    [
        (CONVOLUTION, {"matmul_precision": "high"}, 1.38),
        (CONVOLUTION, {"matmul_precision": "highest"}, 1.38),
        (CONVOLUTION, {"autocast": "bfloat16"}, None),
        (CONVOLUTION, {"parameter_dtype": "bfloat16"}, None),
        (RECURRENT, {"matmul_precision": "high"}, None),
    ],
    ids=["tf32", "convolutions by default", "autocast", "bf16", "an LSTM"],
)
def test_tensor_cores_in_tf32_that_work_a_fifth_of_the_time(
    place: tuple[float, str, str], given: dict[str, str], speedup: float | None
) -> None:
    """A convolutional net on an H200: 1.25x by bf16. An LSTM of cuDNN's gained nothing by it."""
    known = settings(**{"autocast": "", "parameter_dtype": "float32", **given})
    counters = activity(91, sm=81, tensor=21, fp32=3, dram=36)
    steps = even(60, data_ms=0.3, forward_ms=2.6, backward_ms=2.3, optimizer_ms=0.1, other_ms=50)
    on_gpu = {"forward_ms": 16.5, "backward_ms": 33.8, "other_ms": 4.6, "lag_ms": 45}
    stacks = lines((0.6, "train (train.py:40)", "total += loss.item()"), place)
    seen = gpu_window(steps, on_gpu, activity=counters, settings=known, stacks=stacks)
    found = Engine().judge(seen).finding
    assert found.kind == "compute"
    assert found.sub == (None if speedup is None else "precision")
    if speedup is not None:
        assert found.forecast is not None
        assert found.forecast.speedup == pytest.approx(speedup, abs=0.02)
        assert (found.forecast.low or 0.0) < 1.13 < 1.25 < (found.forecast.high or 0.0)
        assert found.advice[0].startswith("bf16, about 1.4x")
    else:
        assert found.advice == (KERNELS,)


IN_TURNS = {"forward_ms": 30, "backward_ms": 50, "optimizer_ms": 5, "other_ms": 20, "lag_ms": 0.01}
"""A GPU that is done with each phase as the host is: it reads the loss in each step."""


@pytest.mark.parametrize(
    ("counters", "given", "speedup"),
    [
        ((81, 65, 15, 2, 25), {}, 1.15),
        ((81, 65, 15, 2, 25), {"autocast": "bfloat16"}, None),
        ((81, 65, 15, 2, 25), {"parameter_dtype": "bfloat16"}, None),
        ((81, 65, 4, 2, 25), {}, None),
        ((95, 65, 15, 2, 25), {}, None),
    ],
    ids=["tf32", "autocast", "bf16", "no products", "the GPU is the limit"],
)
def test_products_in_tf32_beside_other_causes(
    counters: tuple[float, ...], given: dict[str, str], speedup: float | None
) -> None:
    """A diffusion model on an H200, which prints its loss: 1.22x by bf16, 1.18x by no print."""
    reported = dict(zip(("busy", "sm", "tensor", "fp32", "dram"), counters, strict=True))
    known = settings(**{"autocast": "", "parameter_dtype": "float32", **given})
    steps = even(60, forward_ms=10, backward_ms=14, optimizer_ms=2, other_ms=79)
    reads = lines((0.6, "train (train.py:40)", "total += loss.item()"))
    seen = gpu_window(steps, IN_TURNS, activity=activity(**reported), settings=known, stacks=reads)
    found = in_fp32(seen)
    assert (found is None) is (speedup is None)
    if found is not None:
        assert (found.kind, found.sub) == ("compute", "precision")
        assert found.speedup == pytest.approx(speedup, abs=0.04)
        assert "autocast" in found.advice[0]


def test_memory_that_an_update_keeps_busy_is_not_halved_by_bf16() -> None:
    """Of 85 ms the update takes 5 or 25, at the memory's rate: the rest is the net's."""
    known = settings(autocast="", parameter_dtype="float32")
    reads = lines((0.6, "train (train.py:40)", "total += loss.item()"))
    gains = []
    for update_ms in (5, 25):
        device = {**IN_TURNS, "optimizer_ms": update_ms, "backward_ms": 55 - update_ms}
        seen = gpu_window(
            even(60, forward_ms=10, backward_ms=14, optimizer_ms=2, other_ms=79),
            device,
            activity=activity(81, sm=65, tensor=15, fp32=2, dram=35),
            settings=known,
            stacks=reads,
        )
        found = in_fp32(seen)
        gains.append(1.0 if found is None or found.speedup is None else found.speedup)
    assert gains == pytest.approx([1.23, 1.12], abs=0.02)


@pytest.mark.parametrize(
    ("counters", "given", "speedup"),
    [
        ((73, 65, 1, 40, 15), {}, 1.48),
        ((73, 65, 1, 40, 15), {"matmul_precision": "high"}, None),
        ((73, 65, 1, 40, 15), {"autocast": "bfloat16"}, None),
        ((73, 65, 1, 5, 15), {}, None),
    ],
    ids=["fp32", "tf32", "autocast", "no arithmetic"],
)
def test_products_in_fp32_beside_other_causes(
    counters: tuple[float, ...], given: dict[str, str], speedup: float | None
) -> None:
    """A NeRF on an H200 whose loss is read in each step: 1.48x by tf32, 1.73x by bf16."""
    linear = (0.2, "Linear.forward (torch/nn/modules/linear.py:134)", "")
    found = _fp32_at(linear, counters, given)
    assert (found is None) is (speedup is None)
    if found is not None:
        assert (found.kind, found.sub) == ("compute", "precision")
        assert found.speedup == pytest.approx(speedup, rel=0.15)
        assert found.forecast is None or found.forecast.low < (speedup or 0.0)
        assert found.advice[0].startswith("tf32")
        assert found.advice[1].startswith("or bf16")


def test_an_update_beside_products_in_fp32_is_not_shortened() -> None:
    """Of 85 ms the update takes 25, at the memory's rate. The net's 60 have the same products as
    without it, and so the same gain of their own."""
    linear = (0.2, "Linear.forward (torch/nn/modules/linear.py:134)", "")
    bare = _fp32_at(linear, (80, 70, 1, 50, 10), {}, {"optimizer_ms": 0, "backward_ms": 55})
    net, update = 60 / 85, 25 / 85
    mixed = (70 * net + 78 * update, 1 * net, 50 * net, 10 * net + 0.88 * 80 * update)
    beside = _fp32_at(
        linear, (80, *mixed), {}, {"forward_ms": 25, "backward_ms": 35, "optimizer_ms": 25}
    )
    assert bare is not None
    assert beside is not None
    alone_ms = 105 - 105 / (bare.speedup or 1.0)
    beside_ms = 105 - 105 / (beside.speedup or 1.0)
    assert beside_ms == pytest.approx(alone_ms * net, rel=0.05)


def test_of_convolutions_in_fp32_the_switch_for_matrices_is_not_advised() -> None:
    convolution = (0.2, "Conv2d._conv_forward (torch/nn/modules/conv.py:560)", "")
    assert _fp32_at(convolution, (73, 65, 1, 40, 15), {}) is None


def _fp32_at(
    product: tuple[float, str, str],
    counters: tuple[float, ...],
    given: dict[str, str],
    on_gpu: dict[str, float] | None = None,
) -> Finding | None:
    reported = dict(zip(("busy", "sm", "tensor", "fp32", "dram"), counters, strict=True))
    known = settings(**{"matmul_precision": "highest", "autocast": "", **given})
    steps = even(60, forward_ms=10, backward_ms=14, optimizer_ms=2, other_ms=79)
    seen = lines((0.6, "train (train.py:40)", "total += loss.item()"), product)
    device = {**IN_TURNS, **(on_gpu or {})}
    return in_fp32(
        gpu_window(steps, device, activity=activity(**reported), settings=known, stacks=seen)
    )


@pytest.mark.parametrize("host", [0.7, 0.85])
def test_bf16_gives_no_more_than_the_host_leaves(host: float) -> None:
    work = Work(0.97, 0.8, 0.3, 0.1, 0.5, on_tensor_cores=True, products=True, in_tf32=True)
    found = half_type(replace(work, host=host))
    assert found is not None
    assert found.forecast is not None
    assert found.forecast.speedup <= 1 / host + 1e-9
    assert (found.forecast.high or 0.0) <= 1 / host + 1e-9


def test_autocast_adds_launches_of_its_own() -> None:
    """GPTs of eight layers kept an H200 busy in tf32, their hosts at 0.7 of a step and hidden: 0.73
    to 1.02x by bf16, forecast as 1.4x. Python beside the net launches no casts."""
    work = Work(0.99, 0.8, 0.3, 0.1, 0.25, on_tensor_cores=True, products=True, in_tf32=True)
    assert half_type(replace(work, host=0.7)) is not None
    assert half_type(replace(work, host=0.7, issuing=0.65)) is None
    fp32 = Work(0.99, 0.9, 0.0, 0.7, 0.1, products=True)
    first = [precision(replace(fp32, host=0.3, issuing=part)) for part in (0.0, 0.3)]
    bf16, tf32 = (found.advice[0] for found in first if found is not None)
    assert bf16.startswith("bf16")
    assert tf32.startswith("tf32"), "which launches nothing more"


def test_an_inverse_has_no_half_precision() -> None:
    """A Gaussian process by an inverse and a determinant on an H200: "bf16, 1.6x", which would have
    changed nothing."""
    work = Work(0.99, 0.6, 0.0, 0.3, 0.04, products=True)
    whole, third, none = (precision(replace(work, castable=part)) for part in (1.0, 0.3, 0.02))
    assert whole is not None
    assert whole.share is not None
    assert third is not None
    assert third.share is not None
    assert third.share <= min(whole.share, 0.3 + 0.7 / 2)
    assert none is None


def test_a_recurrent_net_beside_waits_gains_nothing_by_bf16() -> None:
    """Three LSTMs on H200s, busy for 52 to 66 % of the time: 0.89, 0.90 and 1.05x."""
    known = settings(autocast="", parameter_dtype="float32")
    steps = even(60, forward_ms=10, backward_ms=14, optimizer_ms=2, other_ms=79)
    reads = (0.6, "train (train.py:40)", "total += loss.item()")
    given = {"activity": activity(81, sm=65, tensor=20, fp32=2, dram=30), "settings": known}
    recurrent, other = (
        in_fp32(gpu_window(steps, IN_TURNS, stacks=lines(reads, place), **given))
        for place in (RECURRENT, CONVOLUTION)
    )
    assert other is not None
    assert recurrent is None


@pytest.mark.parametrize("left_ms", [0.0, 3.6])
@pytest.mark.parametrize(("optimizer_ms", "speedup"), [(118.0, 2.08), (160.0, None)])
def test_a_host_whose_launch_queue_is_full_does_not_limit_bf16(
    optimizer_ms: float, speedup: float | None, left_ms: float
) -> None:
    """A GPT on an H100 whose AdamW updates 147 tensors one by one: 118 ms of 145 were the host's
    own work, and bf16 gave 2.08x. It goes on when the GPU has done what was queued before, with
    some of the update's own kernels left to do; a host that takes longer than that works."""
    known = settings(autocast="", parameter_dtype="float32", matmul_precision="high")
    counters = activity(98.8, sm=80, tensor=36, fp32=4, dram=35)
    step_ms = 27.2 + optimizer_ms + left_ms
    steps = even(
        60, forward_ms=14, backward_ms=13, optimizer_ms=optimizer_ms, other_ms=0.2 + left_ms
    )
    on_gpu = {"forward_ms": 40, "backward_ms": step_ms - 48, "optimizer_ms": 7.8, "lag_ms": 4.5}
    single = (0.8, "_single_tensor_adam (torch/optim/adam.py:545)", "exp_avg.lerp_(grad, 0.1)")
    reads = (0.02, "train (train.py:40)", "total += loss.item()")
    stacks = lines(single, reads)
    slow = {"forward_ms": 40, "backward_ms": 50, "optimizer_ms": step_ms - 90.2, "lag_ms": 4.5}
    clock = on_gpu if speedup is not None else slow
    found = in_fp32(gpu_window(steps, clock, activity=counters, settings=known, stacks=stacks))
    assert (found is None) is (speedup is None)
    if found is not None and speedup is not None:
        assert found.speedup == pytest.approx(speedup, abs=0.1)


def test_a_host_that_launches_as_long_as_the_gpu_was_behind_has_not_waited() -> None:
    """Its backward takes the 8 ms that the GPU was behind, and gains lead in them: the 24 ms of its
    optimizer are its own work, and half of the kernels' time would give nothing."""
    known = settings(autocast="", parameter_dtype="float32", matmul_precision="high")
    counters = activity(92.0, sm=80, tensor=36, fp32=4, dram=35)
    steps = even(60, forward_ms=8, backward_ms=8, optimizer_ms=24)
    on_gpu = {"forward_ms": 16, "backward_ms": 14, "optimizer_ms": 10, "lag_ms": 0.01}
    single = (0.8, "_single_tensor_adam (torch/optim/adam.py:545)", "exp_avg.lerp_(grad, 0.1)")
    places = lines(single)
    seen = gpu_window(steps, on_gpu, activity=counters, settings=known, stacks=places)
    assert in_fp32(seen) is None
