"""What comes first of an optimizer that takes long, and of launches that are its own."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.forecast.gain import with_the_other_way
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.rules.optimizer import for_this_optimizer
from gpuwatch.tui.verdict.scoring import state
from gpuwatch.tui.verdict.window import FrameShare, Stacks
from tests.unit.verdict.advice_runs import KEPT_UP, optimizing
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even


def test_one_word_to_write_comes_first_where_nobody_knows_its_settings() -> None:
    """Measured on an H200: fused=True gave 6.1x, of an Adam that walked through its tensors."""
    first, *others = for_this_optimizer(gpu_window(even(60, **KEPT_UP), KEPT_UP, settings=None))
    assert first.startswith("fused=True")
    assert "SparseAdam" in others[-1]


@pytest.mark.parametrize(
    ("function", "first"),
    [
        ("_single_tensor_adam", "fused=True, or foreach=True"),
        ("_multi_tensor_adam", "fused=True: one kernel"),
        ("_fused_adam", "accumulate gradients"),
    ],
)
def test_the_form_that_is_seen_at_work_is_not_advised(function: str, first: str) -> None:
    window = gpu_window(even(60, **KEPT_UP), KEPT_UP, settings=None)
    places = (FrameShare(0.3, f"{function} (torch/optim/adam.py:879)", None),)
    window = replace(window, stacks=Stacks(100, places, 0, (), None))
    assert for_this_optimizer(window)[0].startswith(first)


@pytest.mark.parametrize(
    ("name", "foreach", "how"),
    [
        ("AdamW", None, "AdamW(..., fused=True)"),
        ("RMSprop", False, "RMSprop(..., foreach=True)"),
        ("RMSprop", None, None),
        ("LBFGS", None, None),
        ("MyOptimizer", None, None),
    ],
)
def test_only_a_form_that_the_class_has_is_advised(
    name: str, foreach: bool | None, how: str | None
) -> None:
    advice = for_this_optimizer(optimizing(optimizer=name, foreach=foreach))
    assert any("together" in one for one in advice) == (how is not None)
    assert how is None or advice[0].startswith(how)


def test_launches_of_the_optimizer_are_mended_there() -> None:
    parts = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 6, "optimizer_ms": 40}
    given = {"activity": activity(17, sm=2), "settings": settings(foreach=False)}
    finding = launch(gpu_window(even(60, **parts), parts, **given))
    assert finding is not None
    assert finding.advice[0] == (
        "most of it is issued in the optimizer: AdamW(..., fused=True): its 161 tensors are "
        "updated together"
    )


def test_the_same_action_is_no_other_way() -> None:
    mended = replace(state("optimizer", None, "warning", ""), advice=("fused=True", "rarely"))
    launches = replace(
        state("launch", None, "warning", ""), advice=("in the optimizer: fused=True",)
    )
    others = replace(state("sync", None, "warning", ""), advice=("read it rarely",))
    found = with_the_other_way(mended, (launches, others), ("launch", "sync"))
    assert found.advice[0] == "fused=True"
    assert found.advice[1].startswith("or instead: read it rarely")
    assert len(found.advice) == 3


def test_one_large_tensor_wants_fewer_rows_though_its_optimizer_is_fused() -> None:
    """Measured on an H200: an embedding of 6 GB, whose fused Adam took 89 % of a step."""
    one = for_this_optimizer(
        optimizing(optimizer="Adam", fused=True, parameters=1, parameter_bytes=6_144_000_000)
    )
    many = for_this_optimizer(optimizing(optimizer="Adam", fused=True))
    assert "SparseAdam" in one[0]
    assert "accumulate" in many[0]


def test_launches_under_anomaly_detection_end_with_it() -> None:
    parts = {"data_ms": 0.2, "forward_ms": 50, "backward_ms": 50, "optimizer_ms": 1}
    found = launch(
        gpu_window(even(60, **parts), parts, activity=activity(30), settings=settings(anomaly=True))
    )
    assert found is not None
    assert found.advice[0].startswith("torch.autograd.set_detect_anomaly(False)")
