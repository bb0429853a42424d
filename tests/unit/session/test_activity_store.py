"""What the GPUs did, as a session holds it."""

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import Activity, ActivitySeen, GpusSeen, OtherProcess
from gpuwatch.tui.session.gpu import LATE_NS, GpuStore
from gpuwatch.tui.timeseries.series import NO_STEPS, StepEdges
from gpuwatch.tui.verdict.gpu_activity import GpuActivity
from tests.unit.session.test_on_a_gpu import gpu

MS = 1_000_000


def reading(at_ms: int, *sms: float, tensor: float | None = 10.0) -> ActivitySeen:
    """One of so many GPUs."""
    gpus = tuple(
        Activity(index=index, source="gpm", interval_ns=100 * MS, busy=95.0, sm=sm, tensor=tensor)
        for index, sm in enumerate(sms)
    )
    return ActivitySeen(t_ns=at_ms * MS, gpus=gpus)


def test_the_picture_shows_the_multiprocessors_of_all_gpus() -> None:
    store = GpuStore()
    for at in range(30):
        store.seen(reading(100 * at, 30.0, 50.0))
    saw = store.sawtooth(StepEdges.of((0, 250 * MS)))
    assert saw is not None
    assert (saw.title, saw.source) == ("SM active %", "gpm 100 ms")
    assert saw.series.interval_ns == 100 * MS
    assert {point.mean for point in saw.series.levels[0]} == {40.0}
    assert saw.tensor is not None
    assert len(saw.tensor.levels[0]) == 30


def test_without_the_counters_it_shows_utilization() -> None:
    store = GpuStore()
    for at in range(5):
        row = Activity(index=0, source="utilization", interval_ns=200 * MS, busy=40.0)
        store.seen(ActivitySeen(t_ns=200 * at * MS, gpus=(row,)))
    saw = store.sawtooth(NO_STEPS)
    assert saw is not None
    assert (saw.title, saw.source, saw.tensor) == ("GPU busy %", "nvml 200 ms", None)


def test_each_gpu_has_its_own_series() -> None:
    store = GpuStore()
    for at in range(30):
        store.seen(reading(100 * at, 30.0, 50.0))
    use = structs.replace(gpu(30.0), power_w=310.0)
    store.used(GpusSeen(t_ns=1_000 * MS, gpus=(use, structs.replace(use, index=1))))
    reported = {(one.device, one.name): one for one in store.series()}
    assert {name for device, name in reported if device == 1} == {
        *("sm", "busy", "tensor"),
        *("power", "memory_used"),
    }, "what nobody tells has no series"
    devices = [device or 0 for device, _ in reported]
    assert devices == sorted(devices)
    sm, power = reported[1, "sm"], reported[0, "power"]
    assert (sm.title, sm.unit, sm.source, sm.interval_ns) == ("SM active", "%", "gpm", 100 * MS)
    assert {point.mean for point in sm.levels[0]} == {50.0}
    assert (power.unit, power.source, power.interval_ns) == ("W", "nvml", 1_000 * MS)
    assert [point.mean for point in power.levels[0]] == [310.0]


def test_a_source_that_takes_over_goes_on_in_a_series_of_its_own() -> None:
    store = GpuStore()
    for at in range(10):
        row = Activity(index=0, source="utilization", interval_ns=200 * MS, busy=40.0)
        store.seen(ActivitySeen(t_ns=200 * at * MS, gpus=(row,)))
    for at in range(30, 60):
        store.seen(reading(100 * at, 30.0))
    (busy,) = (one for one in store.series() if one.name == "busy")
    assert (busy.source, {point.mean for point in busy.levels[0]}) == ("gpm", {95.0})
    saw = store.sawtooth(NO_STEPS)
    assert saw is not None
    assert (saw.title, {point.mean for point in saw.series.levels[0]}) == ("SM active %", {30.0})


def test_the_newest_second_in_one_number() -> None:
    store = GpuStore()
    assert store.newest() == ()
    for at in range(30):
        store.seen(reading(100 * at, 10.0 if at < 20 else 30.0, 50.0))
    first, second = store.newest()
    assert (first.index, first.sm, first.tensor, first.fp32) == (0, 30.0, 10.0, None)
    assert (second.index, second.sm, second.interval_ns) == (1, 50.0, 1_000 * MS)


def test_readings_to_fold_are_gpms_alone() -> None:
    store = GpuStore()
    row = Activity(index=0, source="utilization", interval_ns=200 * MS, busy=40.0)
    store.seen(ActivitySeen(t_ns=200 * MS, gpus=(row,)))
    store.seen(reading(300, 20.0, 40.0))
    late_ns = LATE_NS["gpm"]
    assert store.readings() == [(200 * MS - late_ns, 300 * MS - late_ns, 30.0)]


def test_means_over_the_time_of_the_window() -> None:
    store = GpuStore()
    for at in range(40):
        store.seen(reading(100 * at, 20.0 if at < 20 else 80.0, tensor=None))
    reported = store.between(1_950 * MS, 3_900 * MS)
    assert reported is not None
    assert (reported.sm, reported.tensor, reported.source) == (80.0, None, "gpm")
    assert reported.seconds == pytest.approx(1.95, abs=0.06)
    assert store.between(10_000 * MS, 11_000 * MS) is None


def idle_from_the_sixth_on() -> GpuStore:
    """Ten readings, a tenth of a second apart."""
    store = GpuStore()
    for at in range(10):
        store.seen(reading(100 * at, 40.0 if at < 6 else 0.0))
    return store


def test_what_follows_a_short_window_is_no_part_of_it() -> None:
    """29 steps of 4 ms, and a checkpoint behind them: 22 % of the time busy, not 41 %."""
    reported = idle_from_the_sixth_on().between(400 * MS, 510 * MS)
    assert reported is not None
    assert reported.sm == 40.0


def test_a_window_shorter_than_a_reading_has_what_reaches_into_it() -> None:
    reported = idle_from_the_sixth_on().between(805 * MS, 810 * MS)
    assert reported is not None
    assert reported.sm == 0.0


def test_a_power_cap_is_no_throttling() -> None:
    store = GpuStore()
    store.seen(reading(1_000, 50.0))
    for at, reasons in enumerate([("power cap",), ("power cap", "too hot"), (), ("too hot",)]):
        store.used(GpusSeen(t_ns=(500 + at) * MS, gpus=(gpu(50.0, reasons),)))
    reported = store.between(0, 2_000 * MS)
    assert reported is not None
    assert reported.throttled == 0.5


def shared(*others: OtherProcess, reported: bool = True, clock: int = 1980) -> GpusSeen:
    """A reading of a GPU that others are on."""
    use = structs.replace(
        gpu(90.0, ("too hot",) if clock < 1980 else ()),
        others=others,
        target_memory_bytes=7 if reported else None,
        sm_clock_mhz=clock,
        max_sm_clock_mhz=1980,
    )
    return GpusSeen(t_ns=900 * MS, gpus=(use,))


def of(*seen: GpusSeen) -> GpuActivity:
    store = GpuStore()
    store.seen(reading(1_000, 50.0))
    for one in seen:
        store.used(one)
    reported = store.between(0, 2_000 * MS)
    assert reported is not None
    return reported


def other(pid: int, sm: float | None) -> OtherProcess:
    return OtherProcess(pid=pid, name="serve", memory_bytes=5, sm_percent=sm)


def test_what_others_use_together_and_who_they_are() -> None:
    reported = of(shared(other(7, 10.0), other(8, 30.0)))
    assert (reported.others, reported.others_sm) == (2, 40.0)
    assert [one.pid for one in reported.neighbours] == [8, 7]


def test_others_of_whom_nobody_reports_are_not_idle() -> None:
    assert of(shared(other(7, 10.0), other(8, None))).others_sm is None
    assert of(shared(reported=False)).others_sm is None, "others look like the target"
    assert of(shared()).others_sm == 0.0


def test_what_the_clock_lacks_while_something_holds_it_back() -> None:
    reported = of(shared(clock=990), shared(clock=1980), shared(clock=990), shared(clock=1980))
    assert reported.throttled == 0.5
    assert reported.throttle_reasons == ("too hot",)
    assert reported.clock_lost == pytest.approx(0.25)


def test_a_clock_that_is_not_reported_lost_nothing_that_is_known() -> None:
    unknown = shared(clock=990)
    gpus = tuple(structs.replace(one, max_sm_clock_mhz=None) for one in unknown.gpus)
    assert of(structs.replace(unknown, gpus=gpus)).clock_lost is None
