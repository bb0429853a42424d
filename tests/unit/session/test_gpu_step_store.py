"""The steps on the GPU's clock, as a session holds them."""

import pytest

from gpuwatch.tui.session.gpu_steps import GpuStepStore
from gpuwatch.tui.steps import Batch, GpuClock, GpuStep, Open
from tests.unit.verdict.on_gpu import gpu_step
from tests.unit.verdict.windows import even

STEPS = even(20, data_ms=10, forward_ms=5, backward_ms=5)
ROWS = [
    gpu_step(step, data_ms=6, forward_ms=5, backward_ms=9, wait_ms=10, lag_ms=0.5) for step in STEPS
]


def batch(rows: list[GpuStep]) -> Batch:
    idle = Open(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, None, False)
    clocks = [GpuClock(0, 10_000, 2, 40_000, 0)]
    return Batch(1, 0, [], idle, [], 0, None, None, 0, None, rows, [], clocks)


def test_rows_are_kept_once() -> None:
    store = GpuStepStore()
    store.delivered(batch(ROWS[:12]))
    store.delivered(batch(ROWS))
    assert store.between(0, STEPS[-1].end_ns) == tuple(ROWS)


def test_rows_of_a_stretch_of_time() -> None:
    store = GpuStepStore()
    store.delivered(batch(ROWS))
    assert store.between(STEPS[5].start_ns, STEPS[8].end_ns) == tuple(ROWS[5:9])
    assert store.between(STEPS[5].start_ns, STEPS[8].end_ns - 1) == tuple(ROWS[5:8])


def test_the_rows_in_numbers() -> None:
    store = GpuStepStore()
    store.delivered(batch(ROWS))
    reported = store.phases(ROWS)
    assert reported is not None
    assert reported.steps == 20
    assert reported.exposed_ms == pytest.approx(6)
    assert reported.hidden_ms == pytest.approx(4)
    assert reported.lag_ms == (0.5, 0.5, 0.5, 0.5)
    assert sum(phase.share for phase in reported.phases) == pytest.approx(1)
    assert (reported.every, reported.cost_us) == (2, 40.0)
    assert store.cost_ns_a_step == 20_000


def test_without_rows_there_is_nothing_to_show() -> None:
    assert GpuStepStore().phases(()) is None
    assert GpuStepStore().cost_ns_a_step is None
