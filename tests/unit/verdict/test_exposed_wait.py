"""Waits for data in which the GPU idles, of steps whose waits were not measured."""

from dataclasses import replace

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.exposed_wait import exposed_parts, exposed_wait
from gpuwatch.tui.verdict.idle_ledger import idle_ledger
from gpuwatch.tui.verdict.on_device import on_device
from tests.unit.verdict.on_gpu import activity, gpu_step
from tests.unit.verdict.windows import MS, run, stacks, window

FORWARD = stacks([(0.97, "forward (model.py:12)", None)])


def test_of_a_wait_longer_than_all_that_were_measured_the_gpu_hides_what_it_is_behind() -> None:
    """Every tenth batch takes 28 ms, and none of them was measured: "hidden", and launches led.
    Without such batches the run was 1.95x as fast."""
    rows = run(100, lambda n: {"data_ms": 28 if n % 10 == 0 else 0.3, "forward_ms": 3})
    measured = tuple(gpu_step(row, forward_ms=3.3, wait_ms=0.3, lag_ms=0.8) for row in rows[4::10])
    seen = window(
        rows,
        gpu_present=True,
        gpu_steps=measured,
        activity=activity(40.0),
        stacks=FORWARD,
    )
    assert exposed_wait(seen) == pytest.approx(10 * 27.2 / (100 * 3.3 + 10 * 27.7), abs=0.02)
    ledger = idle_ledger(seen)
    assert ledger is not None
    assert ledger.shares["input"] == pytest.approx(exposed_wait(seen))
    blind = replace(
        seen, gpu_steps=tuple(structs.replace(row, lag_optimizer_ns=None, lag_backward_ns=None,
                                              lag_forward_ns=None, lag_start_ns=None,
                                              uncertain_ns=None) for row in measured)
    )  # fmt: skip
    assert exposed_wait(blind) == 0.0


def test_of_merged_steps_each_wait_may_be_as_long_and_as_hidden_as_one() -> None:
    """Four steps in a row of marks: 2 ms of wait are no longer than four of 0.6 ms, and of 28 ms
    four times what the GPU is behind is hidden."""
    rows = run(25, lambda n: {"data_ms": 28 if n % 5 == 0 else 2, "forward_ms": 12})
    waits = ({"wait_ms": 0.2, "data_ms": 0.1}, {"wait_ms": 0.6, "data_ms": 0.5})
    measured = tuple(
        gpu_step(row, forward_ms=12.6, lag_ms=0.1, **waits[at % 2])
        for at, row in enumerate(rows[1::5])
    )
    seen = window(
        [structs.replace(row, count=4) for row in rows],
        gpu_present=True,
        gpu_steps=measured,
        activity=activity(40.0),
        stacks=FORWARD,
    )
    device, parts = on_device(seen), exposed_parts(seen)
    assert device is not None
    assert 0.7 < device.exposed_share < 0.8
    assert min(parts) == round(device.exposed_share * 2 * MS)
    assert max(parts) == round((28 - 4 * 0.1) * MS)
