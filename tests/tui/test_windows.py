"""The sawtooth's window follows the steps until somebody chooses one."""

from dataclasses import replace

import pytest

from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.widgets.charts.columns import automatic, beside, usable
from tests.tui.fake_run import MS, START, S, busy, series_of, snapshot_at


def _run(step_ms: float, interval_ms: int) -> Snapshot:
    snapshot = snapshot_at(START + 400 * S)
    assert snapshot.steps is not None
    assert snapshot.sawtooth is not None
    series = series_of(busy, snapshot.t_ns, interval_ms * MS, samples=3)
    return replace(
        snapshot,
        steps=replace(snapshot.steps, p50_ms=step_ms),
        sawtooth=replace(snapshot.sawtooth, series=series),
    )


@pytest.mark.parametrize(
    ("step_ms", "interval_ms", "columns", "window_s"),
    [
        (1_240, 100, 94, 10),
        (143, 20, 94, 3),  # 10 s would be whole-step columns: no teeth
        (143, 20, 44, 1),
        (5_000, 100, 94, 120),
        (20, 2, 94, 10),  # too fast for any window to show teeth
        (1_240, 1_000, 94, 120),  # too coarse
    ],
)
def test_teeth_show_where_they_can(
    step_ms: float, interval_ms: int, columns: int, window_s: int
) -> None:
    assert automatic(_run(step_ms, interval_ms), columns, None) == window_s


def test_a_window_that_was_chosen_does_not_go_back_and_forth() -> None:
    assert automatic(_run(1_260, 100), 94, None) == 30
    assert automatic(_run(1_260, 100), 94, 10) == 10
    assert automatic(_run(3_000, 100), 94, 10) == 30


def test_windows_that_would_look_the_same_are_left_out() -> None:
    assert usable(94, 0.1) == (10, 30, 120, 600, 3_600)
    assert usable(94, 0.02) == (3, 10, 30, 120, 600, 3_600)
    assert usable(94, 60.0) == (3_600,)


def test_longer_and_shorter() -> None:
    run = _run(1_240, 100)
    assert beside(run, 94, 10, +1) == 30
    assert beside(run, 94, 10, -1) == 10
    assert beside(run, 94, 600, +1) == 3_600
    assert beside(run, 94, 3_600, +1) == 3_600
