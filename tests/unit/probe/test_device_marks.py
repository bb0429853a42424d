"""The device's clock against a device whose truth is known, through the real hooks."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.unit.probe.device_runs import Run, ms, on_a_device, train
from tests.unit.probe.fake_device import REACH_NS, FakeStream
from tests.unit.probe.held_clock import MS


@pytest.fixture
def run() -> Iterator[Run]:
    with on_a_device() as one:
        yield one


def test_a_loader_bound_run_exposes_all_of_its_wait(run: Run) -> None:
    train(run, 12, wait_ms=50, forward=(2, 5), backward=(2, 10))
    steps = run.reported()
    assert len(steps) >= 8
    for step in steps[2:]:
        # 5 ms of host work after the fetch, 17 ms of device work: 12 ms of the wait are hidden.
        assert ms(step.exposed_ns) == pytest.approx(50 - 12, abs=0.1)
        assert ms(step.hidden_ns) == pytest.approx(12, abs=0.1)
        assert ms(step.wall_ns) == pytest.approx(55, abs=0.1)
        assert ms(step.lag_data_ns) == pytest.approx(0, abs=0.05)


def test_a_wait_behind_a_busy_device_is_hidden(run: Run) -> None:
    train(run, 30, wait_ms=50, forward=(2, 40), backward=(2, 80))
    steps = run.reported()
    assert len(steps) >= 8
    for step in steps[2:]:
        assert ms(step.exposed_ns) == pytest.approx(0, abs=0.05)
        assert ms(step.hidden_ns) == pytest.approx(50, abs=0.1)
        assert ms(step.wall_ns) == pytest.approx(122, abs=0.1)
        assert ms(step.forward_ns) == pytest.approx(40, abs=0.1)
        assert ms(step.backward_ns) == pytest.approx(80, abs=0.1)
    assert ms(steps[-1].lag_data_ns) > 300


def test_a_launch_bound_run_has_no_lag_anywhere(run: Run) -> None:
    train(run, 12, wait_ms=0, forward=(10, 1), backward=(20, 1), update=(5, 1))
    steps = run.reported()[2:]
    assert len(steps) > 5
    for step in steps:
        lags = (step.lag_data_ns, step.lag_forward_ns, step.lag_backward_ns, step.lag_optimizer_ns)
        assert max(ms(lag) for lag in lags) < 0.05
        assert step.uncertain_ns is not None
        assert step.uncertain_ns < 20_000


def test_a_synchronisation_empties_the_queue(run: Run) -> None:
    train(run, 12, wait_ms=1, forward=(2, 40), backward=(2, 80), after=run.device.synchronize)
    steps = run.reported()[2:]
    assert len(steps) > 5
    for step in steps:
        assert ms(step.lag_data_ns) == pytest.approx(0, abs=0.05)
        assert ms(step.lag_backward_ns) == pytest.approx(116, abs=0.2)
        assert ms(step.exposed_ns) == pytest.approx(1, abs=0.05)


def test_phases_partition_every_step_and_steps_follow_each_other(run: Run) -> None:
    train(run, 20, wait_ms=7, forward=(2, 3), backward=(2, 8))
    steps = run.reported()
    for step in steps:
        parts = (step.data_ns, step.startup_ns, step.forward_ns, step.backward_ns,
                 step.optimizer_ns, step.other_ns, step.evaluation_ns, step.checkpoint_ns,
                 step.compile_ns)  # fmt: skip
        assert sum(parts) + sum(step.phases.values()) == step.wall_ns
    offsets = {step.gpu_start_ns - before.gpu_end_ns for before, step in pairwise(steps)}
    assert max(abs(offset) for offset in offsets) < 20_000


def test_the_clock_keeps_its_resolution_for_a_week(run: Run) -> None:
    train(run, 3, wait_ms=7, forward=(2, 3), backward=(2, 8))
    for _ in range(3):
        run.host.clock.work(2 * 24 * 3600 * 1000)
        train(run, 8, wait_ms=7, forward=(2, 3), backward=(2, 4))
        for step in run.reported()[-3:]:
            # 5 ms of host work and the fetch; the device is faster
            assert step.wall_ns == pytest.approx(12 * MS, abs=2_000)


def test_events_are_pooled(run: Run) -> None:
    train(run, 60, wait_ms=7, forward=(2, 3), backward=(2, 8))
    assert len(run.device.events) < 80


def test_nothing_touches_the_device_in_a_capture(run: Run) -> None:
    train(run, 4, wait_ms=7, forward=(2, 3), backward=(2, 8))
    run.reported()
    before = run.device.current
    run.device.current = FakeStream(7, capturing=True)
    train(run, 3, wait_ms=7, forward=(2, 3), backward=(2, 8))
    run.device.current = before
    assert run.reported() == []
    train(run, 6, wait_ms=7, forward=(2, 3), backward=(2, 8))
    assert len(run.reported()) >= 3
    assert run.rate_limiter.stamper is not None
    assert run.rate_limiter.stamper.dropped >= 3 * 6


def test_a_device_that_hangs_costs_a_bounded_number_of_events(run: Run) -> None:
    train(run, 2, wait_ms=1, forward=(1, 1), backward=(1, 1))
    run.device.launch(10_000_000)
    train(run, 400, wait_ms=1, forward=(1, 0), backward=(1, 0))
    assert run.reported()[2:] == []
    assert len(run.device.events) <= 530


def test_without_an_answer_from_the_side_stream_the_marks_align_the_clocks() -> None:
    with on_a_device(slow_side=True) as run:
        train(run, 30, wait_ms=50, forward=(2, 5), backward=(2, 10))
        for step in run.reported():
            assert step.lag_data_ns is not None
            assert step.uncertain_ns is not None
            assert abs(step.lag_data_ns - REACH_NS) <= step.uncertain_ns


def test_several_streams(run: Run) -> None:
    one, other = run.device.current, FakeStream(3)

    def swap() -> None:
        run.device.current = other if run.device.current is one else one

    train(run, 12, wait_ms=20, forward=(2, 3), backward=(2, 8), after=swap)
    steps = run.reported()
    assert len(steps) >= 8
    for step in steps[2:]:
        assert ms(step.wall_ns) == pytest.approx(25, abs=0.1)


def test_the_allocator_is_read_once_a_second(run: Run) -> None:
    gib = 2**30
    run.device.stats = {
        "allocated_bytes": {"all": {"current": 3 * gib, "peak": 5 * gib}},
        "reserved_bytes": {"all": {"current": 6 * gib, "peak": 7 * gib}},
        "active_bytes": {"all": {"current": 4 * gib}},
        "inactive_split_bytes": {"all": {"current": gib}},
        "num_alloc_retries": 1,
        "num_ooms": 0,
    }
    train(run, 500, wait_ms=15, forward=(2, 3), backward=(2, 8))
    run.reported()
    rows = run.host.timeline.ledger.memory
    assert len(rows) == pytest.approx(500 * 0.020, abs=2)
    assert rows[-1].allocated == 3 * gib
    assert rows[-1].at_backward == 3 * gib
    assert rows[-1].retries == 1
    assert (rows[-1].inactive_split, rows[-1].device_allocs) == (gib, None)
    assert rows[-1].lowest == 3 * gib


def test_an_idle_device_answers_within_its_uncertainty(run: Run) -> None:
    train(run, 20, wait_ms=7, forward=(2, 3), backward=(2, 4))
    step = run.reported()[-1]
    # Loader-bound and idle at the fetch: the device passes the mark REACH_NS after the host.
    assert step.lag_data_ns is not None
    assert step.uncertain_ns is not None
    assert abs(step.lag_data_ns - REACH_NS) <= step.uncertain_ns


def test_marks_close_to_each_other_share_an_event(run: Run) -> None:
    assert run.rate_limiter.stamper is not None
    train(run, 6, wait_ms=7, forward=(2, 3), backward=(2, 4))
    run.reported()
    run.rate_limiter.stamper.near_ns = 20_000
    run.rate_limiter.turn = lambda now_ns, steps, behind_ns, ppm=0: None  # type: ignore[method-assign]
    before = [event.recorded for event in run.device.events]
    train(run, 20, wait_ms=7, forward=(2, 3), backward=(2, 4))
    recorded = sum(event.recorded for event in run.device.events) - sum(before)
    assert recorded <= 20 * 4 + 12
    for step in run.reported()[-5:]:
        assert step.wall_ns == pytest.approx(12 * MS, abs=2_000)
        assert ms(step.data_ns) == pytest.approx(7 - 4, abs=0.05)
        assert step.other_ns == pytest.approx(0, abs=30_000)
        assert step.uncertain_ns is not None
        assert step.uncertain_ns < 20_000


def test_what_is_spent_is_never_less_than_nothing(run: Run) -> None:
    """The first look at the clocks makes torch create its side streams: milliseconds."""
    made = run.device.side_stream

    def slowly(device: int) -> FakeStream:
        run.host.clock.work(3)
        return made(device)

    run.device.side_stream = slowly  # type: ignore[method-assign]
    assert run.rate_limiter.stamper is not None
    spent = [0]
    for _ in range(30):
        train(run, 2, wait_ms=7, forward=(2, 3), backward=(2, 4))
        spent.append(run.rate_limiter.stamper.spent_ns)
    assert all(later >= before for before, later in pairwise(spent))
    assert 0 < spent[-1] < 30 * 2 * 7 * 40_000
