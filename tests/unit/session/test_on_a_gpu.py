"""The picture of a run on a GPU."""

from tests.unit.session.making import (
    MS,
    delivered,
    picture,
    session,
    steps,
)
from tui.observations import (
    Activity,
    ActivitySeen,
    GpusSeen,
    GpuUse,
)


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
    assert sawtooth.interval_ns == 200 * MS
    assert {sample.value for sample in sawtooth.samples} == {40.0}
    assert engine.windows[-1].gpu_present


def test_a_gpu_that_does_not_tell_its_use_is_no_zero() -> None:
    store, _ = session()
    store.ingest(delivered(steps(20, data_ms=100, forward_ms=100)))
    store.ingest(GpusSeen(t_ns=MS, gpus=(gpu(None),)))
    sawtooth = picture(store, 4000).sawtooth
    assert sawtooth is not None
    assert sawtooth.title == "process computes %"
    assert "does not tell" in sawtooth.note
