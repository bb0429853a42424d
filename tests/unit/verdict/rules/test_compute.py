"""What a busy GPU is busy with."""

from dataclasses import replace

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.compute import compute, in_fp32
from gpuwatch.tui.verdict.rules.gpu_work import precision, work_of
from gpuwatch.tui.verdict.stack_samples import Stacks
from tests.unit.verdict.noted import lines, settings
from tests.unit.verdict.on_gpu import activity, gpu_step, gpu_window
from tests.unit.verdict.windows import even, run

STEPS = even(60, data_ms=0.1, forward_ms=3, backward_ms=5, optimizer_ms=1)

BEHIND = {"forward_ms": 3, "backward_ms": 5.5, "optimizer_ms": 0.6, "lag_ms": 60}


LINEAR = lines((0.4, "linear (torch/nn/functional.py:2330)", "x = self.fc(x)"))
MATMUL = lines((0.4, "forward (train.py:40)", "scores = q @ k.mT"))
POINTWISE = lines((0.4, "forward (train.py:40)", "x = torch.exp(x) * torch.sin(x)"))


@pytest.mark.parametrize(
    ("reported", "kind", "sub"),
    [
        ({"busy": 99, "sm": 96, "tensor": 93, "fp32": 0, "dram": 17}, "compute", "saturated"),
        ({"busy": 100, "sm": 97, "tensor": 0, "fp32": 77, "dram": 5}, "compute", "precision"),
        ({"busy": 99, "sm": 96, "tensor": 93, "fp32": 0, "dram": 18}, "compute", "saturated"),
        ({"busy": 100, "sm": 99, "tensor": 0, "fp32": 2, "dram": 88}, "memory-bandwidth", None),
        ({"busy": 97, "sm": 12, "tensor": 3, "fp32": 2, "dram": 9}, "compute", "underfilled"),
        ({"busy": 96, "sm": 85, "tensor": 25, "fp32": 8, "dram": 45}, "compute", None),
        ({"busy": 99, "sm": 95, "tensor": 20, "fp32": 3, "dram": 12}, "compute", "misaligned"),
        ({"busy": 99, "sm": 60, "tensor": 20, "fp32": 3, "dram": 12}, "compute", None),
        ({"busy": 99, "sm": 95, "tensor": 20, "fp32": 22, "dram": 12}, "compute", None),
        ({"busy": 99, "sm": 95, "tensor": 32, "fp32": 3, "dram": 12}, "compute", None),
        ({"busy": 99, "sm": 40, "tensor": 12, "fp32": 3, "dram": 12}, "compute", "underfilled"),
        ({"busy": 99, "sm": 95, "tensor": 20, "fp32": 3, "dram": 65}, "memory-bandwidth", None),
        ({"busy": 100, "sm": 98, "tensor": 29, "fp32": 0, "dram": 7}, "compute", "misaligned"),
        ({"busy": 99, "sm": 91, "tensor": 26, "fp32": 2, "dram": 29}, "compute", None),
        ({"busy": 100, "sm": 83, "tensor": 19, "fp32": 3, "dram": 33}, "compute", None),
    ],
    ids=[
        *("bf16", "fp32", "tf32", "pointwise", "small kernels", "mixed"),
        *("odd sizes", "not full", "fp32 too", "nearly healthy", "underfilled", "memory too"),
        *("recorded odd sizes", "a recorded resnet", "another"),
    ],
)
def test_the_loads_of_an_h200(reported: dict[str, float], kind: str, sub: str | None) -> None:
    verdict = Engine().judge(
        gpu_window(STEPS, BEHIND, activity=activity(**reported), stacks=LINEAR)
    )
    assert (verdict.finding.kind, verdict.finding.sub) == (kind, sub)


def test_odd_sizes_promise_no_least_gain() -> None:
    """Small tiles look the same, and other sizes need not help them: "≥ 3.5x"."""
    reported = activity(busy=99, sm=95, tensor=20, fp32=3, dram=12)
    finding = Engine().judge(gpu_window(STEPS, BEHIND, activity=reported, stacks=LINEAR)).finding
    assert finding.forecast is not None
    assert (finding.forecast.low, finding.forecast.high) == (1.0, None)


@pytest.mark.parametrize(
    ("stacks", "settings", "sub"),
    [
        (None, None, "fp32"),
        (POINTWISE, Settings(autocast=None), "fp32"),
        (LINEAR, None, "precision"),
        (MATMUL, None, "precision"),
        (POINTWISE, Settings(autocast=""), "precision"),
    ],
    ids=["nothing is known", "pointwise", "a module", "a line", "the graph"],
)
def test_fp32_arithmetic_is_no_product_until_one_is_seen(
    stacks: Stacks | None, settings: Settings | None, sub: str
) -> None:
    """exp and sin of large tensors keep the fp32 units as busy as a product would."""
    reported = activity(100, sm=97, tensor=0, fp32=60, dram=5)
    seen = gpu_window(STEPS, BEHIND, activity=reported, stacks=stacks, settings=settings)
    found = compute(seen)
    assert found is not None
    assert found.sub == sub
    claims = "matrix products run in fp32" in found.headline
    assert claims is (sub == "precision")
    assert (found.speedup is not None) is claims


def test_nothing_is_reported_of_a_gpu_that_idles() -> None:
    assert work_of(activity(27, sm=24, tensor=24, fp32=0, dram=6)) is None


def test_without_the_counters_there_is_no_sub() -> None:
    found = compute(gpu_window(STEPS, BEHIND, activity=activity(99, source="utilization")))
    assert found is not None
    assert (found.kind, found.sub) == ("compute", None)


def test_what_a_lower_precision_would_give_is_an_estimate() -> None:
    reported = activity(100, sm=97, tensor=0, fp32=77, dram=5)
    device = {**BEHIND, "optimizer_ms": 0.2}
    found = compute(gpu_window(STEPS, device, activity=reported, stacks=LINEAR))
    assert found is not None
    assert found.speedup == pytest.approx(10.5, rel=0.15)  # 10.0x and 10.6x were measured
    assert found.speedup_is == "estimate"
    assert found.severity == "critical"


def test_a_run_that_is_saturated_has_nothing_to_fix() -> None:
    reported = activity(99, sm=96, tensor=60, fp32=2, dram=30)
    found = compute(gpu_window(STEPS, BEHIND, activity=reported))
    assert found is not None
    assert (found.severity, found.speedup, found.advice) == ("info", None, ())


def test_sizes_that_do_not_fit_are_padded() -> None:
    reported = activity(99, sm=95, tensor=20, fp32=3, dram=12)
    found = compute(gpu_window(STEPS, BEHIND, activity=reported))
    assert found is not None
    assert found.share == pytest.approx((1 - 0.20 / 0.99 / 0.40) * 0.99, abs=0.01)
    assert (found.severity, found.speedup_is) == ("warning", "bound")
    assert found.advice[0].startswith("pad sizes to multiples of 8")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(autocast="bfloat16"),
        Settings(parameter_dtype="float16"),
        Settings(matmul_precision="high"),
    ],
)
def test_fp32_units_at_work_under_autocast_are_no_matrix_products(settings: Settings) -> None:
    """Depthwise convolutions run there in any precision."""
    reported = activity(99.0, sm=90.0, tensor=6.0, fp32=30.0, dram=30.0)
    off = Settings(autocast="", matmul_precision="highest", parameter_dtype="float32")
    plain, half = work_of(reported, off, True), work_of(reported, settings, True)
    assert plain is not None
    assert precision(plain) is not None
    assert half is not None
    assert precision(half) is None


def test_a_checkpoint_now_and_then_hides_no_precision() -> None:
    """A quarter of the time nothing runs, for a checkpoint: between them the GPU is the limit, and
    that is worth more."""
    rows = run(
        60, lambda n: {"forward_ms": 40, "backward_ms": 50, "checkpoint_ms": 300 * (n % 10 == 0)}
    )
    on_gpu = {"forward_ms": 40, "backward_ms": 50, "lag_ms": 40}
    counters = activity(75, sm=72, tensor=2, fp32=50, dram=8)
    seen = gpu_window(rows, on_gpu, activity=counters, stacks=LINEAR)
    verdict = Engine().judge(seen)
    assert (verdict.finding.kind, verdict.finding.sub) == ("compute", "precision")
    assert verdict.finding.speedup == pytest.approx(2.05, abs=0.2)
    assert [one.kind for one in verdict.contributors] == ["checkpoint"]


def test_parameters_as_large_as_matrices_show_products() -> None:
    """A compiled net in full precision, whose modules no sample meets: 28 tensors, 814 MB."""
    counters = activity(96, sm=92, tensor=0, fp32=72, dram=6)
    for held, sub in ((814_000_000, "precision"), (28 * 16_384, "fp32")):
        known = Settings(autocast=None, parameters=28, parameter_bytes=held)
        seen = gpu_window(STEPS, BEHIND, activity=counters, settings=known)
        assert Engine().judge(seen).finding.sub == sub


def test_a_faster_gpu_helps_as_far_as_the_host_keeps_up() -> None:
    """A logger of 190 ms hides behind 280 ms of a GPT's kernels: bf16 gave 1.37x, where another
    such run gained 2.37x. Both read 1.55x by the counters."""
    counters = activity(99, sm=89, tensor=41, fp32=5, dram=24)
    known = settings(matmul_precision="high", autocast="", parameter_dtype="float32")
    parts = {"data_ms": 0.5, "forward_ms": 10, "backward_ms": 67, "optimizer_ms": 13}
    on_gpu = {"forward_ms": 72, "backward_ms": 192, "optimizer_ms": 5, "other_ms": 11, "lag_ms": 50}
    steps = even(60, other_ms=189.5, **parts)
    logs = lines((0.7, "tokenize (log.py:9)", "for word in words:"))
    hidden = gpu_window(steps, on_gpu, activity=counters, settings=known, stacks=logs)
    found = Engine().judge(hidden).finding
    assert (found.kind, found.sub) == ("compute", "precision")
    assert found.speedup is not None
    assert 1.2 < found.speedup < 1.5


def test_cells_that_keep_the_gpu_busy_have_faster_kernels() -> None:
    """An LSTM by its cells at 98 % busy: 1.56x by nn.LSTM, and no advice."""
    cell = (0.5, "LSTMCell.forward (torch/nn/modules/rnn.py:1767)", "")
    counters = activity(98, sm=76, tensor=17, fp32=1, dram=41)
    found = compute(gpu_window(STEPS, BEHIND, activity=counters, stacks=lines(cell)))
    assert found is not None
    assert found.advice[0].startswith("nn.LSTM instead of LSTMCell in a loop")
    assert (found.sub, found.severity) == ("cells", "critical")
    assert found.speedup == pytest.approx(1.54, rel=0.03)
    # Three nets by their cells in tf32 gained 12 % at most.
    slower = activity(98, sm=76, tensor=30, fp32=1, dram=36)
    known = settings(matmul_precision="high", autocast="", parameter_dtype="float32")
    seen = gpu_window(STEPS, BEHIND, activity=slower, settings=known, stacks=lines(cell))
    found = compute(seen)
    assert found is not None
    assert found.sub != "cells"


def test_parts_that_keep_the_gpu_busy_leave_some_of_it_empty() -> None:
    """An LSTM in tf32, called for eight parts of its batch at 80 % busy: 4.5x by one call."""
    seen = lines((0.5, "LSTM.forward (torch/nn/modules/rnn.py:1169)", ""))
    loop = "Training.forward (training.py:171)"
    part = replace(seen, main=(replace(seen.main[0], in_net=True, in_parts=loop),))
    found = _at(90, 54, part)
    assert (found.sub, found.severity, found.speedup_is) == ("parts", "critical", "bound")
    assert found.advice[0].startswith("one call of the net for the whole batch")
    assert found.forecast is not None
    assert found.forecast.low == pytest.approx(0.9 * 1.56, rel=0.01)
    assert found.forecast.high is None
    # Kernels that have no multiprocessor left would take as long in one call, and tensor cores that
    # are as busy as they get are well used however many calls they come in.
    assert _at(90, 86, part).sub != "parts"
    assert _at(98, 86, part, tensor=80).sub == "saturated"


def test_parts_are_a_cause_where_launches_hold_little() -> None:
    loop = "Training.forward (training.py:171)"
    seen = lines((0.5, "LSTM.forward (torch/nn/modules/rnn.py:1169)", ""))
    part = replace(seen, main=(replace(seen.main[0], in_net=True, in_parts=loop),))
    counters = activity(90, sm=54, tensor=15, fp32=1, dram=21)
    judged = Engine().judge(gpu_window(STEPS, BEHIND, activity=counters, stacks=part))
    assert (judged.finding.kind, judged.finding.sub) == ("compute", "parts")
    assert judged.finding.share_low is not None


def _at(busy: float, sm: float, stacks: Stacks, tensor: float = 15) -> Finding:
    counters = activity(busy, sm=sm, tensor=tensor, fp32=1, dram=21)
    found = compute(gpu_window(STEPS, BEHIND, activity=counters, stacks=stacks))
    assert found is not None
    return found


@pytest.mark.parametrize(("update_ms", "kind"), [(1.0, "memory-bandwidth"), (23.0, "optimizer")])
def test_memory_that_an_update_keeps_busy_is_not_the_nets(update_ms: float, kind: str) -> None:
    """A recommender on an H200 whose AdamW updates a table of 4 GB for 23 of 32 ms: fusing the net
    was to give 2.1x. Sparse gradients gave 2.3x, torch.compile nothing."""
    counters = activity(98, sm=90, tensor=3, fp32=2, dram=72)
    net_ms = (32.0 - update_ms) / 3
    parts = {"forward_ms": net_ms, "backward_ms": 2 * net_ms, "optimizer_ms": update_ms}
    rows = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=2, other_ms=25)
    waits = lines((0.8, "train (train.py:40)", "total += loss.item()"))
    seen = gpu_window(rows, {**parts, "lag_ms": 0.01}, activity=counters, stacks=waits)
    assert Engine().judge(seen).finding.kind == kind


def test_a_host_that_empties_the_cache_waits_for_the_gpu() -> None:
    """An LSTM in tf32 whose cache is emptied in each step: 1.62x by bf16, 1.09x by no emptying. The
    host's 52 ms in each forward counted as work of its own, which bf16 would not shorten."""
    counters = activity(89, sm=78, tensor=42, fp32=1, dram=32)
    known = settings(matmul_precision="high", autocast="", parameter_dtype="float32")
    steps = even(60, forward_ms=52, backward_ms=10, optimizer_ms=0.3)
    device = {"forward_ms": 25, "backward_ms": 37, "optimizer_ms": 0.7, "lag_ms": 41}
    empties = lines((0.7, "empty_cache (memory.py:224)", "torch.cuda.empty_cache()"))
    given = {"activity": counters, "settings": known}
    found = in_fp32(gpu_window(steps, device, stacks=empties, **given))
    assert found is not None
    assert found.forecast is not None
    assert found.forecast.speedup > 1.3
    own = lines((0.7, "tokens (train.py:224)", "ids = [table[word] for word in words]"))
    assert in_fp32(gpu_window(steps, device, stacks=own, **given)) is None


IN_TRAINER = lines(
    (0.84, "Runner._loop (runner/loop.py:1847)", ""),
    (0.04, "BertModel.forward (transformers/models/bert/modeling_bert.py:700)", ""),
)
FP32 = {"matmul_precision": "highest", "autocast": "", "parameter_dtype": "float32"}
READ_EACH_STEP = {"data_ms": 4.0, "forward_ms": 6.7, "backward_ms": 8.5, "optimizer_ms": 0.7}


def in_trainer(idle_ms: float, *forward_ms: float) -> Finding:
    """A GPT-2 in a library's loop on an H200, which looks for NaN in each loss, in a line of its
    own. `idle_ms`: the GPU has nothing to do for so long. `forward_ms`: in turn."""
    device = {"backward_ms": 96.6, "optimizer_ms": 1.0, "other_ms": idle_ms, "lag_ms": 0.01}
    behind = 96.6 + 1.0 - sum(READ_EACH_STEP.values()) + READ_EACH_STEP["data_ms"]

    def forward(number: int) -> float:
        return forward_ms[number % len(forward_ms)]

    def parts(number: int) -> dict[str, float]:
        return {**READ_EACH_STEP, "other_ms": behind + forward(number) + idle_ms}

    seen = gpu_window(
        run(60, parts),
        device,
        activity=activity(94.7, sm=87, tensor=3.2, fp32=48.3, dram=16.1),
        settings=settings(**FP32),
        stacks=IN_TRAINER,
    )
    rows = tuple(gpu_step(row, **device, forward_ms=forward(row.number)) for row in seen.steps[::3])
    found = compute(replace(seen, gpu_steps=rows))
    assert found is not None
    assert (found.kind, found.sub) == ("compute", "precision")
    return found


def test_a_host_that_goes_on_when_the_gpu_is_done_waits_whatever_it_calls() -> None:
    """bf16 gave 3.35x and tf32 2.1x, and both were forecast as 1.00x: samples lie in a line of the
    library, and 135 ms of each step counted as the host's own work."""
    found = in_trainer(3.0, 50.6)
    assert found.speedup == pytest.approx(3.35, rel=0.1)
    assert "about 1.8x" in found.advice[1]
    # A third longer than the GPU needs it works by itself, and then the GPU waits for it.
    assert (in_trainer(50.0, 50.6).speedup or 0.0) < 1.5


def test_lengths_that_differ_behind_masks_take_tf32_first() -> None:
    """Two transformers with padded batches of all lengths: 2.2x and 1.4x by tf32, and bf16 made
    them slower."""
    found = in_trainer(3.0, 30.0, 70.0, 40.0, 60.0, 50.0)
    assert found.advice[0].startswith("tf32, one line")
    assert found.speedup == pytest.approx(1.8, rel=0.05)


@pytest.mark.parametrize(("tensor", "is_sure"), [(0, True), (8, False)])
def test_what_products_move_is_not_fused(tensor: float, is_sure: bool) -> None:
    """DiffWave on an H200: torch.compile gave 1.03x, where 1.5x was to be the least."""
    counters = {"busy": 95, "sm": 90, "tensor": tensor, "fp32": 2, "dram": 60}
    found = compute(gpu_window(STEPS, BEHIND, activity=activity(**counters), stacks=POINTWISE))
    assert found is not None
    assert found.kind == "memory-bandwidth"
    assert found.forecast is not None
    assert (found.forecast.low > 1.3) is is_sure
