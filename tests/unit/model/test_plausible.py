"""What no run can have is refused on arrival."""

import math
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.model.plausible import MOST, is_plausible
from gpuwatch.tui.settings import LoopOperations, SameProducts, Settings, StepOperations
from tests.unit.session.making import delivered, steps

LOOP = LoopOperations("loss (train.py:9)", 40_000, 7_000, 700, 64)


def with_loop(**fields: Any) -> Settings:
    loop = structs.replace(LOOP, **fields)
    return Settings(step_operations=StepOperations(1, 1_000, 100_000, 10_000, (), loop=loop))


def test_settings_of_a_run_are_plausible() -> None:
    batch = delivered(steps(3, forward_ms=1)).batch
    assert is_plausible(batch)
    assert is_plausible(structs.replace(batch, settings=with_loop()))


@pytest.mark.parametrize(
    "settings",
    [
        Settings(threads=-1),
        Settings(unused_nodes=math.nan),
        Settings(same_products=SameProducts(math.inf, 3, 1)),
        with_loop(us=-1),
        with_loop(operations=MOST),
    ],
)
def test_settings_with_impossible_figures_are_refused(settings: Settings) -> None:
    """However deep the figure lies."""
    batch = delivered(steps(3, forward_ms=1)).batch
    assert not is_plausible(structs.replace(batch, settings=settings))
