"""The picture of a run on a GPU."""

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import Activity, ActivitySeen, Delivered, GpusSeen, GpuUse
from gpuwatch.tui.session.gpu import GpuStore
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.session.making import (
    MS,
    delivered,
    picture,
    session,
    step,
    steps,
)
from tests.unit.session.test_gpu_step_store import ROWS, batch


def gpu(percent: float | None, throttles: tuple[str, ...] = ()) -> GpuUse:
    return GpuUse(
        uuid="GPU-1",
        index=0,
        name="H200",
        utilization_percent=percent,
        memory_used_bytes=1,
        memory_total_bytes=2,
        target_memory_bytes=None,
        power_w=None,
        sm_clock_mhz=None,
        temperature_c=None,
        throttle_reasons=throttles,
    )


def test_with_a_gpu_the_sawtooth_is_its_use_at_the_grain_it_was_read() -> None:
    store, engine = session()
    store.ingest(delivered(steps(20, data_ms=100, forward_ms=100)))
    for i in range(10):
        read = [Activity(index=n, source="samples", interval_ns=200 * MS, busy=b)
                for n, b in enumerate((30.0, 50.0))]  # fmt: skip
        store.ingest(ActivitySeen(t_ns=200 * MS * i, gpus=tuple(read)))
    store.ingest(GpusSeen(t_ns=2000 * MS, gpus=(gpu(30.0), gpu(50.0))))
    sawtooth = picture(store, 4000).sawtooth
    assert sawtooth is not None
    assert (sawtooth.title, sawtooth.source) == ("GPU busy %", "nvml 200 ms")
    assert sawtooth.series.interval_ns == 200 * MS
    assert {point.mean for point in sawtooth.series.levels[0]} == {40.0}
    assert engine.windows[-1].gpu_present


def test_the_gpus_clock_may_come_for_a_second_after_the_first_message() -> None:
    """The probe stamps steps for who has come: before that "no loader seen" would be a guess."""
    store, engine = session()
    made = steps(20, data_ms=10, forward_ms=10)
    store.ingest(GpusSeen(t_ns=0, gpus=(gpu(30.0),)))
    store.ingest(delivered(made, t_ms=400))
    picture(store, 400)
    assert engine.windows[-1].gpu_clocked
    picture(store, 1_500)
    assert not engine.windows[-1].gpu_clocked, "it has none"


HOST = Settings(parameters=3, host_parameters=3, parameter_device="cpu")


@pytest.mark.parametrize(
    ("known", "held", "unused"),
    [
        (HOST, None, True),
        (None, None, False),
        (structs.replace(HOST, host_parameters=2), None, False),
        (HOST, 0, False),
    ],
    ids=["all on the CPU", "not known yet", "one on the GPU", "a context on the GPU"],
)
def test_a_gpu_beside_a_net_on_the_cpu_is_not_used(
    known: Settings | None, held: int | None, unused: bool
) -> None:
    """It is judged like a process on a machine without one: what the GPU does is not its doing."""
    store, engine = session()
    read = (Activity(index=0, source="gpm", interval_ns=100 * MS, busy=0.0),)
    for i in range(40):
        store.ingest(ActivitySeen(t_ns=100 * MS * i, gpus=read))
    store.ingest(GpusSeen(t_ns=0, gpus=(structs.replace(gpu(0.0), target_memory_bytes=held),)))
    store.ingest(delivered(steps(20, data_ms=100, forward_ms=100), settings=known))
    picture(store, 4000)
    seen = engine.windows[-1]
    assert isinstance(seen, StepWindow)
    assert seen.gpu_unused == unused
    assert seen.gpu_present != unused
    assert (seen.activity is None) == unused


def test_a_gpu_that_does_not_show_its_use_is_no_zero() -> None:
    store, _ = session()
    store.ingest(delivered(steps(20, data_ms=100, forward_ms=100)))
    store.ingest(GpusSeen(t_ns=MS, gpus=(gpu(None),)))
    sawtooth = picture(store, 4000).sawtooth
    assert sawtooth is not None
    assert sawtooth.title == "training %"
    assert "reports no use" in sawtooth.note


def test_what_the_marks_cost_is_a_part_of_the_mean_step() -> None:
    # Nine of ten steps have their batch ready: half of them show nothing of the time in all.
    store, _ = session()
    store.ingest(Delivered(t_ns=0, batch=batch(ROWS)))
    made, start_ms = [], 10_000.0
    for number in range(101, 201):
        made.append(step(number, start_ms, forward_ms=1, data_ms=0 if number % 10 else 990))
        start_ms = made[-1].end_ns / MS
    store.ingest(delivered(made))
    seen = picture(store, start_ms)
    assert seen.steps is not None
    assert seen.steps.p50_ms < 25
    share = seen.status.cost_share
    assert share == pytest.approx((20_000 + 6 * 500) / 1e9 * seen.steps.steps_s, rel=0.02)


def test_the_link_to_the_host_is_known_by_its_generation_and_width() -> None:
    store = GpuStore()
    read = (Activity(index=0, source="gpm", interval_ns=100 * MS, busy=50.0, pcie_rx_mb_s=900.0),)
    store.seen(ActivitySeen(t_ns=100 * MS, gpus=read))
    linked = structs.replace(gpu(50.0), pcie_generation=5, pcie_width=16)
    store.used(GpusSeen(t_ns=150 * MS, gpus=(linked,)))
    known = store.between(0, 200 * MS)
    assert known is not None
    assert known.link_mb_s == pytest.approx(63_000, rel=0.01)
    assert known.pcie_rx_peak_mb_s == 900.0
