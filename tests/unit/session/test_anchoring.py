"""A folded profile is put where the GPU's own clock says that it idles."""

import pytest

from gpuwatch.tui.model.snapshot import Scope
from gpuwatch.tui.session.step_profile import anchored
from tests.unit.verdict.on_gpu import gpu_step
from tests.unit.verdict.windows import even

H200 = {
    130: (0, 0, 0, 80, 89, 89, 95, 64, 0, 0, 0, 0),
    170: (0, 7, 100, 82, 90, 97, 39, 2, 0, 0, 0, 0),
    310: (98, 94, 100, 60, 0, 0, 0, 0, 0, 3, 0, 67),
}
"""Profiles that one gave, by the length of the step in ms: idle for 60 %, then busy. Their shape is
right, and their place is not."""


def scope(mean: tuple[float, ...], step_ms: int = 130) -> Scope:
    return Scope(step_ms * 1_000_000, 50, "gpm 100 ms", mean, mean, mean)


def rows(idle: float, step_ms: float = 130.0) -> tuple:  # type: ignore[type-arg]
    """Steps on the GPU's clock that wait for data for that part, then work."""
    steps = even(20, data_ms=idle * step_ms, forward_ms=(1 - idle) * step_ms)
    parts = {"data_ms": idle * step_ms, "forward_ms": (1 - idle) * step_ms}
    return tuple(gpu_step(step, **parts) for step in steps)


@pytest.mark.parametrize("step_ms", H200)
def test_profiles_of_an_h200_come_into_their_place(step_ms: int) -> None:
    found = anchored(scope(H200[step_ms], step_ms), rows(0.6, step_ms))
    assert found is not None
    mean = [value or 0.0 for value in found.mean]
    truth = [max(mean) * min(1.0, max(0.0, at + 1 - 0.6 * 12)) for at in range(12)]
    off = (sum((a - b) ** 2 for a, b in zip(mean, truth, strict=True)) / 12) ** 0.5
    assert off < 20
    assert sorted(mean) == sorted(H200[step_ms])


def test_a_gpu_that_never_idles_gives_nothing_to_go_by() -> None:
    assert anchored(scope((90.0,) * 12), rows(0.02)) is None


def test_a_profile_that_contradicts_the_clock_is_not_shown() -> None:
    assert anchored(scope((0.0, 90.0) * 6), rows(0.6)) is None


def test_without_the_gpus_clock_there_is_no_place() -> None:
    assert anchored(scope(H200[130]), ()) is None
