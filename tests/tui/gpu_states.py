"""The fake run's GPU over time, and GPUs that report less, or more."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import msgspec

from gpuwatch.tui.model.observations import OtherProcess
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.timeseries.series import Series
from gpuwatch.tui.timeseries.writer import Growing
from gpuwatch.tui.verdict.findings import MissingSignal
from tests.tui.fake_run import GIB, MS, START, STEP_MS, S, busy
from tests.tui.states import four_gpus, healthy_without_gpu, on_gpm

SECONDS = 65
Value = Callable[[int], float]


def quantity(name: str, title: str, unit: str, device: int, end_ns: int, value: Value) -> Series:
    """The last minute of it, as sampled: by GPM every 100 ms, by NVML every second."""
    slow = name in ("power", "sm_clock", "memory_clock", "temperature", "memory_used")
    interval_ns = S if slow else 100 * MS
    growing = Growing(name, title, unit, "nvml" if slow else "gpm", device, interval_ns)
    last = end_ns // interval_ns
    for at in range(last - SECONDS * S // interval_ns, last + 1):
        growing.add(at * interval_ns, value(at * interval_ns - interval_ns // 2))
    return growing.series()


def copying(t_ns: int) -> float:
    """MB/s towards the device: a batch at the start of every forward."""
    at_ms = (t_ns - START) / MS % STEP_MS
    return 5_900.0 if 700 <= at_ms < 860 else 40.0


@lru_cache(maxsize=64)
def series_of_gpu(
    device: int, end_ns: int, scale: float = 1.0, link: float = 0.0
) -> tuple[Series, ...]:
    """All that an H200 reports; `link`: MB/s over NVLink. Each frame asks again: it is made once
    (60 ms)."""
    reported: list[tuple[str, str, str, Value]] = [
        ("sm", "SM active", "%", lambda t: scale * busy(t)),
        ("busy", "GPU busy", "%", lambda t: min(100.0, scale * busy(t) + 5)),
        ("occupancy", "occupancy", "%", lambda t: scale * busy(t) / 5),
        ("tensor", "tensor cores", "%", lambda t: max(0.0, scale * busy(t) - 30)),
        ("fp32", "FP32", "%", lambda t: scale * busy(t) / 30),
        ("dram", "DRAM bandwidth", "%", lambda t: scale * busy(t) / 2),
        ("pcie_rx", "PCIe to the GPU", "MB/s", copying),
        ("pcie_tx", "PCIe from the GPU", "MB/s", lambda t: 70.0),
        ("nvlink_rx", "NVLink received", "MB/s", lambda t: link * busy(t) / 80),
        ("nvlink_tx", "NVLink sent", "MB/s", lambda t: link * busy(t) / 80),
        ("power", "power", "W", lambda t: 310.0 + 40 * ((t // S) % 3)),
        ("sm_clock", "SM clock", "MHz", lambda t: 1980.0 if (t // S) % 7 else 1755.0),
        ("memory_clock", "memory clock", "MHz", lambda t: 3201.0),
        ("temperature", "temperature", "°C", lambda t: 41.0),
        ("memory_used", "memory used", "bytes", lambda t: 68.9 * GIB),
    ]
    return tuple(
        quantity(name, title, unit, device, end_ns, of) for name, title, unit, of in reported
    )


def h200(snapshot: Snapshot) -> Snapshot:
    """One with counters, on its own, at its full clocks."""
    run = on_gpm(snapshot)
    gpu = msgspec.structs.replace(
        run.gpus[0], throttle_reasons=(), others=(), max_sm_clock_mhz=1980
    )
    return replace(run, gpus=(gpu,), series=series_of_gpu(0, snapshot.t_ns))


def hot_and_shared(snapshot: Snapshot) -> Snapshot:
    """The same with somebody else on it, too hot."""
    run = h200(snapshot)
    others = (
        OtherProcess(pid=1204, name="python", memory_bytes=12 * GIB, sm_percent=41.0),
        OtherProcess(pid=991, name="jupyter", memory_bytes=2 * GIB, sm_percent=3.0),
    )
    gpu = msgspec.structs.replace(
        run.gpus[0], throttle_reasons=("power cap", "too hot"), sm_clock_mhz=1410, others=others
    )
    return replace(run, gpus=(gpu,))


def four(snapshot: Snapshot) -> Snapshot:
    """A process on four that talk over NVLink; one is slower."""
    run = four_gpus(snapshot)
    every = [
        one
        for device in range(4)
        for one in series_of_gpu(device, snapshot.t_ns, 0.5 if device == 2 else 1.0, 90_000.0)
    ]
    gpus = [msgspec.structs.replace(gpu, max_sm_clock_mhz=1980) for gpu in run.gpus]
    activity = [
        msgspec.structs.replace(run.activity[0], index=i, nvlink_rx_mb_s=31_000.0) for i in range(4)
    ]
    return replace(run, gpus=tuple(gpus), series=tuple(every), activity=tuple(activity))


def before_hopper(snapshot: Snapshot) -> Snapshot:
    """An A100: NVML's utilization and what is slow, nothing of what is at work."""
    run = h200(snapshot)
    slow = ("power", "sm_clock", "memory_clock", "temperature", "memory_used")
    series = [one for one in run.series if one.name in slow]
    growing = Growing("busy", "GPU busy", "%", "nvml", 0, 200 * MS)
    last = snapshot.t_ns // (200 * MS)
    for at in range(last - 300, last + 1):
        growing.add(at * 200 * MS, busy(at * 200 * MS - 100 * MS))
    gpu = msgspec.structs.replace(run.gpus[0], name="NVIDIA A100-SXM4-80GB", power_limit_w=400.0)
    missing = (
        MissingSignal(
            "gpm",
            "needs Hopper or newer",
            instead="utilization stands in, blind to how much is at work",
        ),
    )
    return replace(
        run,
        gpus=(gpu,),
        activity=(),
        series=(growing.series(), *series),
        status=replace(run.status, missing=missing),
    )


def without(snapshot: Snapshot) -> Snapshot:
    """No driver at all."""
    run = healthy_without_gpu(snapshot)
    missing = (MissingSignal("nvml", "no NVIDIA driver (libnvidia-ml.so.1)"),)
    assert run.sawtooth is not None
    series = replace(run.sawtooth.series, name="computes", source="hook", device=None)
    return replace(
        run,
        sawtooth=replace(run.sawtooth, series=series),
        status=replace(run.status, missing=missing),
    )
