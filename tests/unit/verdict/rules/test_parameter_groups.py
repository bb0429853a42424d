"""An optimizer with a group for each parameter."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.rules.optimizer import optimizer
from tests.unit.verdict.advice_runs import optimizing

APART = {"groups": 198, "alike_groups": 172, "parameters": 198}


def test_groups_with_the_same_settings_are_advised_to_be_one() -> None:
    """Layer-wise rates of a RoBERTa on an H200: 44 % of its step, "fused 1.3x"; 1.5 and 1.75x by
    as many groups as there are rates."""
    found = optimizer(optimizing(**APART))
    assert found is not None
    assert found.advice[0] == (
        "one group for all parameters with the same settings, 26 instead of 198: each group is "
        "updated by itself"
    )
    assert any("fused=True" in one for one in found.advice)
    assert found.forecast is not None
    left = 1.5 * 26 / 198
    assert found.forecast.speedup == pytest.approx(1 / (1 - (1 - left) / 3), abs=0.01)
    assert 1.2 < found.forecast.low < found.forecast.speedup < (found.forecast.high or 0) < 1.5


@pytest.mark.parametrize(
    "other",
    [
        {"groups": 2, "alike_groups": 0},
        {"groups": None, "alike_groups": None},
        {"alike_groups": 20},
        {"parameter_device": "cpu"},
        {"foreach": False},
        {"optimizer": "Lion"},
    ],
    ids=[
        "two",
        "an older probe",
        "with settings of their own",
        "on the CPU",
        "one by one anyway",
        "a class that updates tensor by tensor",
    ],
)
def test_other_groups_stay(other: dict[str, Any]) -> None:
    seen = optimizing(**{**APART, **other})
    found = optimizer(seen)
    assert found is not None
    assert not any("group for all" in one for one in found.advice)


def test_without_the_gpus_clock_what_they_give_is_not_known() -> None:
    seen = optimizing(**APART)
    found = optimizer(replace(seen, gpu_steps=()))
    assert found is not None
    assert found.advice[0].startswith("one group for all")
    assert found.forecast is None
