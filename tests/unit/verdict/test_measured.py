"""What a busy GPU would gain: ends that physics gives, and the order between them."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.forecast.measured import (
    filled,
    fused,
    host_alone,
    on_tensor_cores,
    replay_of,
)
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.thresholds.gpu import (
    BF16_RATIO,
    DRAM_FULL,
    FP32_FULL,
    FUSION_SAVES,
    SM_FULL,
    TF32_RATIO,
)
from tests.unit.verdict.advice_runs import device_memory
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, run

STEPS = even(60, data_ms=0.1, forward_ms=3, backward_ms=5, optimizer_ms=1)
BEHIND = {"forward_ms": 3, "backward_ms": 5.5, "optimizer_ms": 0.6, "lag_ms": 60}


def test_products_alone_become_as_much_shorter_as_the_peaks_show() -> None:
    left = on_tensor_cores(FP32_FULL, 0.0, SM_FULL, BF16_RATIO)
    assert left == pytest.approx(1 / BF16_RATIO)


def test_what_is_no_product_stays_in_tf32_and_keeps_half_its_traffic_in_bf16() -> None:
    assert on_tensor_cores(0.0, DRAM_FULL / 2, SM_FULL, TF32_RATIO) == 1.0
    assert on_tensor_cores(0.0, DRAM_FULL / 2, SM_FULL, BF16_RATIO, 0.5) == pytest.approx(0.75)


def test_pauses_between_kernels_and_updates_stay() -> None:
    assert on_tensor_cores(0.3, 0.0, SM_FULL / 2, BF16_RATIO, 0.5) > 0.5
    left = on_tensor_cores(FP32_FULL / 2, DRAM_FULL / 2, SM_FULL, BF16_RATIO, 0.5, 0.5)
    assert left == pytest.approx(0.5 + 0.5 / BF16_RATIO)


def test_traffic_of_products_is_hidden_behind_them() -> None:
    """A GPT of 0.43 s a step in fp32 on an H200: 7.0x by bf16. Two MLPs: 10.6x and 11.5x."""
    assert 1 / on_tensor_cores(0.66, 0.10, 0.96, BF16_RATIO, 0.5) == pytest.approx(7.0, rel=0.15)
    assert 1 / on_tensor_cores(0.75, 0.07, 0.97, BF16_RATIO, 0.5) == pytest.approx(11, rel=0.2)


def test_a_step_never_becomes_longer() -> None:
    assert on_tensor_cores(0.0, 0.88, 0.5, TF32_RATIO) == 1.0
    assert filled(0.99, 0.9, 0.95) == 1.0


def test_fusing_saves_no_more_than_the_traffic() -> None:
    assert fused(DRAM_FULL, 1.0) == pytest.approx(0.0)
    assert fused(DRAM_FULL / 2, 0.5) == pytest.approx(0.75)


def test_the_forecast_of_fusion_lies_between_the_ends_it_names() -> None:
    reported = activity(100, sm=98, tensor=1, fp32=3, dram=61)
    found = compute(gpu_window(STEPS, {**BEHIND, "optimizer_ms": 0.0}, activity=reported))
    assert found is not None
    assert found.speedup is not None
    pairs, all_of_it = (1 / fused(0.61, part) for part in FUSION_SAVES)
    assert pairs < found.speedup < all_of_it
    assert any(f"{pairs:.1f}x" in e.text and f"{all_of_it:.1f}x" in e.text for e in found.evidence)


def test_each_precision_has_its_own_gain_and_the_larger_comes_first() -> None:
    reported = activity(100, sm=95, tensor=2, fp32=66, dram=9)  # tensor cores: products are seen
    found = compute(gpu_window(STEPS, BEHIND, activity=reported))
    assert found is not None
    assert found.speedup is not None
    assert f"about {found.speedup:.1f}x" in found.advice[0]
    assert "bf16" in found.advice[0]
    assert "tf32" in found.advice[1]


def test_a_host_that_waits_for_a_full_queue_is_no_limit() -> None:
    """Generated run 1003, H200: bf16 gave 10.8x, and 1.06x was forecast: an evaluation drained the
    queue, and what the host waited there counted as its own work."""
    quick: dict[str, Any] = {"forward_ms": 3, "backward_ms": 1.5, "optimizer_ms": 1}
    queued = {"forward_ms": 35, "backward_ms": 141, "optimizer_ms": 25}
    drained = {**quick, "forward_ms": 1080}
    cycle = [*[quick] * 5, *[queued] * 4, drained]
    rows = run(60, lambda number: {**cycle[number % 10]})
    on_gpu = {"forward_ms": 67, "backward_ms": 130, "optimizer_ms": 4.6, "lag_ms": 800}
    reported = activity(99, sm=96, tensor=2, fp32=74, dram=7)
    window = gpu_window(rows, on_gpu, activity=reported)
    assert host_alone(window) == pytest.approx(5.5 / 201.6, rel=0.01)
    found = compute(window)
    assert found is not None
    assert found.sub == "precision"
    assert found.speedup is not None
    assert found.speedup > 6
    assert host_alone(gpu_window(rows, {**on_gpu, "lag_ms": 0.02})) == 1.0


def test_filling_the_device_is_bounded_by_its_busiest_unit() -> None:
    room = device_memory(peak=0.05, kept=0.01)
    reported = activity(97, sm=40, tensor=10, fp32=2, dram=9)
    found = compute(gpu_window(STEPS, BEHIND, activity=reported, **room))
    assert found is not None
    assert found.sub == "underfilled"
    assert found.speedup_is == "bound"
    assert found.speedup is not None
    assert found.speedup >= 1 / 0.4, "multiprocessors that are busy may be filled better, too"
    assert found.forecast is not None
    assert found.forecast.kind == "at-least"
    assert found.forecast.speedup == pytest.approx(1 / (1 - 0.97 + 0.4), rel=0.05)
    reported = activity(99, sm=30, tensor=2, fp32=3, dram=39)
    found = compute(gpu_window(STEPS, BEHIND, activity=reported, **room))
    assert found is not None
    assert found.forecast is not None
    assert found.forecast.speedup == found.speedup, "its memory is full before they are"


@pytest.mark.parametrize(
    ("memory", "most"),
    [(device_memory(0.51, 0.1), 2.0), (device_memory(0.95, 0.8), None), ({}, None)],
    ids=["room for twice", "full", "not known"],
)
def test_a_larger_batch_gives_no_more_than_there_is_room_for(
    memory: dict[str, Any], most: float | None
) -> None:
    """ "batch_size 32 → 64 (92 GiB of 100 GiB then)": at least 4.8x, it said."""
    reported = activity(99, sm=20, tensor=3, fp32=3, dram=9)
    found = compute(gpu_window(STEPS, BEHIND, activity=reported, **memory))
    assert found is not None
    assert found.sub == "underfilled"
    assert (found.speedup_is, found.forecast) == ("bound", None)
    assert most is None or found.speedup == most


def test_copies_of_an_evaluation_hold_up_no_training() -> None:
    """They wait in the evaluation for what was queued before it."""
    rows = even(60, forward_ms=30, backward_ms=30, evaluation_ms=40)
    on_gpu = {"forward_ms": 40, "backward_ms": 40, "evaluation_ms": 20, "lag_ms": 10}
    copies = FrameShare(0.2, "to_device (train.py:9)", None, "batch.to(device)", "evaluation")
    net = FrameShare(0.8, "linear (torch/nn/functional.py:9)", None, "", "forward", in_net=True)
    held, without = (
        replay_of(gpu_window(rows, on_gpu, stacks=Stacks(200, places, 0, (), None)))
        for places in ((copies, net), (replace(copies, line="score(batch)"), net))
    )
    assert held is not None
    assert held == without
    trains = replace(copies, phase="other")
    seen = gpu_window(rows, on_gpu, stacks=Stacks(200, (trains, net), 0, (), None))
    assert replay_of(seen) != held
