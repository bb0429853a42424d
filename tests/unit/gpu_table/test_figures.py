"""The table's arithmetic: partition, exposure and lag."""

import pytest

from tests.gpu.exposed_figures import by_number, exposure
from tests.gpu.lag_figures import allowed_ns, host_of, lags, true_lag
from tests.gpu.partition_figures import partition
from tests.unit.gpu_table.steps import gpu_step

MS = 1_000_000


def test_a_partition_of_all_steps() -> None:
    reported = [gpu_step(at * 10 * MS, 10 * MS) for at in range(-3, 8)]
    found = partition(reported, 0, 50 * MS, 5)
    assert (found.reported, found.error, found.gap_ns) == (5, 0.0, 0)


def test_a_partition_of_some_steps_is_scaled() -> None:
    reported = [gpu_step(at * 10 * MS, 11 * MS) for at in (0, 3)]
    assert partition(reported, 0, 50 * MS, 5).error == pytest.approx(0.1)


def test_a_window_of_which_nothing_was_reported_is_no_partition() -> None:
    assert partition([], 0, 50 * MS, 5).error == -1


def test_steps_are_numbered_by_the_scripts_own_times() -> None:
    reported = [gpu_step(start_ns, 5) for start_ns in (3, 12, 21, 500)]
    found = by_number(reported, [10, 20, 30])
    assert {number: step.start_ns for number, step in found.items()} == {0: 12, 1: 21, 2: 500}


def test_errors_are_points_of_the_step() -> None:
    reported = {n: gpu_step(n * 10 * MS, 10 * MS, data_ns=2 * MS) for n in range(6)}
    truth = {n: 2.0 * MS for n in range(6)} | {3: 2.3 * MS}
    found = exposure(reported, truth, skip=1)
    assert found is not None
    assert (found.steps, found.worst_step) == (4, 3)
    assert found.median_points == 0
    assert found.worst_points == pytest.approx(3.0)
    assert found.probe_share == pytest.approx(20.0)


def test_no_common_step_is_no_exposure() -> None:
    assert exposure({}, {0: 1.0, 1: 1.0}, skip=0) is None


LOOKS = [(1000 * MS, 0.0, 5e3), (2000 * MS, 1000.1 * MS, 5e3)]
"""The device's clock runs 100 us a second ahead."""


def test_a_drifting_clock_is_followed() -> None:
    assert host_of(500.05 * MS, LOOKS) == pytest.approx(1500 * MS)


def test_a_busy_device_passes_the_event_when_it_is_done() -> None:
    mark = (0, "data", 1400 * MS, 1420 * MS, 500.05 * MS)
    assert true_lag(mark, LOOKS) == pytest.approx(100 * MS)


def test_an_idle_device_passes_the_event_as_it_is_put() -> None:
    own_ns = 1500 * MS - 10_000
    mark = (0, "data", own_ns - 30_000, own_ns, 500.05 * MS)
    assert true_lag(mark, LOOKS) == pytest.approx(10_000)


def test_lags_of_the_steps_that_were_reported() -> None:
    reported = {0: gpu_step(0, 5, lag_ns=101 * MS), 1: gpu_step(0, 5)}
    marks = [(step, "backward", 1400 * MS, 1400 * MS, 500.05 * MS) for step in (0, 1, 2)]
    (found,) = lags(reported, marks, LOOKS)
    assert (found.boundary, found.steps) == ("backward", 1)
    assert found.worst_error_ns == pytest.approx(1 * MS)


@pytest.mark.parametrize(("lag_ns", "allowed"), [(0, 50_000), (-9, 50_000), (100 * MS, 2 * MS)])
def test_the_bar_on_a_lag(lag_ns: float, allowed: float) -> None:
    assert allowed_ns(lag_ns) == allowed
