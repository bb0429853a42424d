"""How long steps took, counted for ever: what Prometheus makes quantiles of."""

import pytest

from gpuwatch.tui.session.steps import StepStore
from gpuwatch.tui.steps import STEP_BOUNDS_S
from tests.unit.session.making import step


def test_every_step_counts_once_and_merged_ones_with_their_mean() -> None:
    store = StepStore()
    rows = [
        step(1, 0, data_ms=20.0),
        step(5, 20, count=4, data_ms=12.0),
        step(6, 32, data_ms=90_000.0),
    ]
    store.add(rows[:2])
    store.add(rows)  # a reconnection sends the last minutes again
    found = store.histogram
    assert found.steps == 6
    assert found.sum_s == pytest.approx(90.032)
    by_bound = {
        bound: count for bound, count in zip(STEP_BOUNDS_S, found.counts[:-1], strict=True) if count
    }
    assert by_bound == {0.02: 1, 0.005: 4}
    assert found.counts[-1] == 1
