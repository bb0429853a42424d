"""A penalty on all parameters that is a term of the loss."""

from typing import Any

import pytest

from gpuwatch.tui.settings import Penalty, Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.penalty import penalty
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, window

ALL = Penalty(part=0.9, parameters=52)
TERM = FrameShare(
    *(0.2, "Net.penalty (ctr.py:88)", None),
    phase="forward",
    samples=100,
    line="total = total + torch.sum(l2 * torch.square(w))",
)


def seen(found: Penalty | None = ALL, optimizer: str | None = "Adam", **more: Any) -> StepWindow:
    """The update takes a quarter of a step."""
    return window(
        even(60, forward_ms=100, backward_ms=200, optimizer_ms=100),
        settings=Settings(penalty=found, optimizer=optimizer, **more),
        stacks=Stacks(100, (TERM,), 0, (), None, main_unplaced=0.0),
    )


def test_squares_of_all_parameters_are_the_optimizers_to_do() -> None:
    found = penalty(seen())
    assert found is not None
    assert found.share == pytest.approx(0.25 * 0.75 * 0.9)
    assert found.headline == "a penalty on parameters takes 17% of each step"
    assert found.advice[0].endswith(": Net.penalty (ctr.py:88)")
    judged = Engine().judge(seen())
    assert any(one.sub == "penalty" for one in (judged.finding, *judged.contributors))


def test_a_fused_update_takes_less_than_the_penalty() -> None:
    fused, other = penalty(seen(fused=True)), penalty(seen())
    assert fused is not None
    assert other is not None
    assert (fused.share or 0.0) > 2 * (other.share or 0.0)


@pytest.mark.parametrize(
    "given",
    [
        seen(None),
        seen(Penalty(part=0.1, parameters=2)),
        seen(optimizer=None),
        seen(optimizer="Mine"),
        seen(optimizer="AdamW"),
        seen(Penalty(part=float("nan"), parameters=0)),
    ],
    ids=["none", "little", "no optimizer", "of their own", "apart from gradients", "no part"],
)
def test_nothing_is_named(given: StepWindow) -> None:
    assert penalty(given) is None


def test_nothing_is_named_where_a_gpu_is_not_read() -> None:
    given = window(
        even(60, forward_ms=100, backward_ms=200, optimizer_ms=100),
        settings=Settings(penalty=ALL, optimizer="Adam"),
        gpu_present=True,
    )
    assert penalty(given) is None
