"""A normal distribution with a full covariance of numbers that do not depend on each other."""

from dataclasses import replace

import pytest

from gpuwatch.tui.settings import DiagonalSolves, Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.diagonal_normal import diagonal_normal
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, window

SIX = DiagonalSolves(part=1.0, size=6)
SOLVES = FrameShare(
    *(0.3, "_batch_mahalanobis (torch/distributions/multivariate_normal.py:47)"),
    caller="Agent.evaluate (ppo.py:90)",
    phase="forward",
    samples=100,
)
CHECKS = replace(
    SOLVES, share=0.1, frame="_PositiveDefinite.check (torch/distributions/constraints.py:564)"
)
NET = replace(SOLVES, share=0.3, frame="Linear.forward (torch/nn/modules/linear.py:134)")


def seen(solves: DiagonalSolves | None = SIX, *places: FrameShare) -> StepWindow:
    return window(
        even(60, forward_ms=50, backward_ms=40, optimizer_ms=10),
        settings=Settings(diagonal_solves=solves),
        stacks=Stacks(100, places or (SOLVES, CHECKS, NET), 0, (), None, main_unplaced=0.0),
    )


def test_plain_normals_are_the_same_where_the_covariance_is_diagonal() -> None:
    found = diagonal_normal(seen())
    assert found is not None
    assert found.share == pytest.approx(0.85 * 0.4)
    assert found.advice[0].endswith("it is the same: Agent.evaluate (ppo.py:90)")
    judged = Engine().judge(seen()).finding
    assert (judged.kind, judged.sub) == ("compute", "diagonal-normal")


@pytest.mark.parametrize(
    "given",
    [
        seen(None),
        seen(DiagonalSolves(part=0.5, size=6)),
        seen(SIX, NET),
        replace(seen(), gpu_present=True),
    ],
    ids=["no graph shows it", "some are full", "no samples", "a GPU"],
)
def test_nothing_is_named(given: StepWindow) -> None:
    assert diagonal_normal(given) is None
