"""Attention that cuDNN plans anew for each new shape, and what only looks like attention."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.advice_runs import limited
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_step
from tests.unit.verdict.windows import run, window

ATTENTION = "sdpa_attention_forward (transformers/integrations/sdpa_attention.py:158)"
BACKWARD = "_engine_run_backward (torch/autograd/graph.py:869)"
LINEAR = "Linear.forward (torch/nn/modules/linear.py:134)"


def found(
    attending: float = 0.39, slow_ms: float = 85.0, until: int = 1_000, **known: Any
) -> Finding:
    """A classifier in bf16 on texts of all lengths: three steps of ten are of a known length, and
    all are after the step `until`."""

    def parts(number: int) -> dict[str, float]:
        phase_ms = 15.0 if number % 10 < 3 or number > until else slow_ms
        return {"forward_ms": phase_ms, "backward_ms": phase_ms, "optimizer_ms": 1.5}

    places = (
        FrameShare(attending, ATTENTION, "step (train.py:31)", phase="forward"),
        FrameShare(0.47, BACKWARD, "step (train.py:33)", phase="backward"),
        FrameShare(0.08, LINEAR, "step (train.py:31)", phase="forward"),
    )
    given = {"autocast": "bfloat16", "capability": 90, **known}
    fields: dict[str, Any] = {
        "activity": activity(12, sm=8, tensor=3, fp32=1, dram=5),
        "settings": settings(**given),
        "stacks": Stacks(75, places, 0, (), None),
    }
    rows = run(60, parts)
    measured = tuple(gpu_step(row, **parts(row.number), lag_ms=0.02) for row in rows[::3])
    fields |= {"steps": tuple(rows[until:])} if until < len(rows) else {}
    judged = launch(window(rows, gpu_present=True, gpu_steps=measured, **fields))
    assert judged is not None
    return judged


def test_attention_that_is_planned_for_each_new_shape_leaves_cudnn() -> None:
    """Measured on an H200: 4.98x, where a CUDA graph and a larger batch came first."""
    judged = found()
    mean_ms, known_ms = 0.3 * 31.5 + 0.7 * 171.5, 31.5
    assert judged.advice[0].startswith("torch.backends.cuda.enable_cudnn_sdp(False), about 4.1x")
    assert judged.speedup == pytest.approx(mean_ms / known_ms, rel=0.02)


def test_a_scaler_shows_an_autocast_that_a_library_sets_within_its_own_calls() -> None:
    """Sentence Transformers in fp16: no autocast is seen where the loop calls the backward."""
    judged = found(autocast="", scaler=True)
    assert judged.advice[0].startswith("torch.backends.cuda.enable_cudnn_sdp(False)")


@pytest.mark.parametrize(
    "given",
    [
        {"attending": 0.05},
        {"autocast": ""},
        {"capability": 80},
    ],
    ids=["one call of many", "in fp32", "before Hopper"],
)
def test_attention_is_one_call_of_many_elsewhere(given: dict[str, Any]) -> None:
    assert "cudnn" not in found(**given).advice[0]


def test_where_every_step_has_a_new_shape_the_call_shows_the_least() -> None:
    judged = found(slow_ms=20.0)
    assert judged.advice[0].startswith("torch.backends.cuda.enable_cudnn_sdp(False), 1.6x or more")
    assert judged.forecast is not None
    assert judged.forecast.kind == "at-least"


def test_once_all_lengths_are_planned_it_is_over() -> None:
    """Sentence Transformers on an H200: steps of 130 to 240 ms in the first ten seconds, of 35 ms
    from then on, and samples of before."""
    assert "cudnn" not in found(until=30).advice[0]


@pytest.mark.parametrize(
    ("frame", "line", "within"),
    [
        ("dice_loss (train.py:88)", "probs = F.softmax(logits, dim=1)", False),
        ("kd_loss (train.py:88)", "F.kl_div(F.log_softmax(s, 1), F.softmax(t, 1))", False),
        ("Router.forward (moe.py:9)", "weights = torch.softmax(self.gate(x), dim=-1)", True),
        ("train (train.py:88)", "accuracy.update(torch.softmax(out, dim=1), y)", False),
    ],
    ids=["a loss", "distillation", "a router", "a metric"],
)
def test_a_softmax_elsewhere_is_no_attention(frame: str, line: str, within: bool) -> None:
    """A U-Net in bf16 with a Dice loss, limited by the memory: "F.scaled_dot_product_attention does
    it in one kernel", by one sample of 200."""
    norm = FrameShare(
        0.995, "BatchNorm2d.forward (torch/nn/modules/batchnorm.py:9)", "UNet.forward (u.py:9)",
        "return self.bn(x)", "forward", in_net=True,
    )  # fmt: skip
    places = (norm, FrameShare(0.005, frame, None, line, "forward", in_net=within))
    stacks = Stacks(200, places, 0, (), None)
    found = compute(limited(sm=95, tensor=5, fp32=4, dram=80, stacks=stacks))
    assert found is not None
    assert found.kind == "memory-bandwidth"
    assert "scaled_dot_product_attention" not in found.advice[0]
