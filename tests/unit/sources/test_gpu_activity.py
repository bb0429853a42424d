"""The ladder of sources of what a GPU does: GPM, NVML's samples, NVML's utilization."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from gpuwatch.tui.model.observations import (
    Activity,
    ActivitySeen,
    AnyObservation,
    GpusSeen,
    Missing,
)
from gpuwatch.tui.sources import nvml as nvml_source
from gpuwatch.tui.sources.nvml import NvmlSource
from tests.unit.sources.fake_nvml import FakeNvml

MS = 1_000_000


@contextmanager
def polled(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[AnyObservation]]:
    """Two seconds of polls, 10 ms apart."""
    monkeypatch.setattr(nvml_source, "has_opened_driver", lambda pid: True)
    source = NvmlSource(os.getpid(), fake)
    source.open()
    seen: list[AnyObservation] = []
    for at in range(201):
        fake.now_ns = at * 10 * MS + 7
        seen += source.poll(fake.now_ns)
    yield seen
    source.close()
    assert not fake.open
    assert all(sample.freed for sample in fake.samples)


def activities(seen: list[AnyObservation]) -> list[Activity]:
    return [gpu for one in seen if isinstance(one, ActivitySeen) for gpu in one.gpus]


def test_gpm_every_100_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml()
    with polled(fake, monkeypatch) as seen:
        reported = activities(seen)
        assert len(reported) == 20
        assert sum(gpu.interval_ns for gpu in reported) == 2_000 * MS
        first = reported[0]
        assert (first.source, first.busy, first.sm, first.tensor) == ("gpm", 90.0, 80.0, 60.0)
        assert (first.dram, first.fp32, first.nvlink_rx_mb_s) == (30.0, 0.0, None)
        assert len(fake.samples) == 2
        assert not [one for one in seen if isinstance(one, Missing)]


def test_an_idle_gpu_is_reported_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    with polled(FakeNvml(values={}), monkeypatch) as seen:
        assert [gpu.sm for gpu in activities(seen)] == [0.0] * 20


def test_a_pair_that_was_not_refreshed_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.sources.fake_nvml.REFRESH_NS", 250 * MS)
    with polled(FakeNvml(), monkeypatch) as seen:
        reported = activities(seen)
        assert {gpu.sm for gpu in reported} == {80.0}
        assert sum(gpu.interval_ns for gpu in reported) >= 1_750 * MS
        assert max(gpu.interval_ns for gpu in reported) >= 250 * MS


def test_a_sample_is_taken_just_after_a_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_source, "has_opened_driver", lambda pid: True)
    fake = FakeNvml()
    source = NvmlSource(os.getpid(), fake)
    source.open()
    seen: list[AnyObservation] = []
    fake.now_ns = 77 * MS
    while fake.now_ns < 6_000 * MS:
        seen += source.poll(fake.now_ns)
        fake.now_ns += source.interval_ns
    source.close()
    locked = [one for one in seen if isinstance(one, ActivitySeen)][10:]
    assert {one.t_ns // MS % 100 for one in locked} <= set(range(11))
    reported = activities(seen)[10:]
    assert sum(gpu.interval_ns for gpu in reported) == pytest.approx(
        100 * MS * len(reported), rel=0.02
    )
    assert {gpu.sm for gpu in reported} == {80.0}
    assert fake.metrics_read < 1.15 * len(activities(seen)) + 10


def test_counters_that_nobody_refreshes_are_reported_and_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml_source, "has_opened_driver", lambda pid: True)
    monkeypatch.setattr(nvml_source, "host_engine", lambda: ("nv-hostengine", 812))
    fake = FakeNvml()
    source = NvmlSource(os.getpid(), fake)
    source.open()
    seen: list[AnyObservation] = []
    for at in range(1_000):
        fake.now_ns = 0 if at < 750 else at * 10 * MS
        seen += source.poll(at * 10 * MS)
    source.close()
    missing = [one for one in seen if isinstance(one, Missing)]
    assert [one.source for one in missing] == ["gpm", "gpm"]
    assert "does not refresh" in missing[0].reason
    assert "812" in missing[0].fix
    assert missing[1].reason == ""
    assert min(gpu.interval_ns for gpu in activities(seen)) < 110 * MS


def test_a_metric_that_the_device_does_not_show_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    with polled(FakeNvml(refused={5}), monkeypatch) as seen:
        assert {gpu.tensor for gpu in activities(seen)} == {None}


def test_without_gpm_the_samples_of_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = [(200_000 * at, 50 + at) for at in range(1, 30)]
    fake = FakeNvml(gpm=False, buffer=buffer[:4])
    with polled(fake, monkeypatch) as seen:
        sources = {one.source for one in activities(seen)}
        assert sources == {"utilization"}, "the past has no pace, and there is nothing new"
        (missing,) = [one for one in seen if isinstance(one, Missing)]
        assert (missing.source, missing.fix) == ("gpm", "")
        assert missing.reason == "needs Hopper or newer"
        assert missing.instead == (
            "NVML's utilization stands in, ~1 s average: blind to how much of the GPU is at work, "
            "and to steps under ~2 s"
        )
    fake = FakeNvml(gpm=False, buffer=buffer[:4])
    monkeypatch.setattr(nvml_source, "has_opened_driver", lambda pid: True)
    source = NvmlSource(os.getpid(), fake)
    source.open()
    source.poll(0)
    fake.buffer = buffer[:7]
    (reported,) = activities(source.poll(600 * MS))
    source.close()
    assert (reported.source, reported.busy, reported.interval_ns) == ("samples", 56.0, 600 * MS)


@pytest.mark.parametrize("is_dry_an_error", [True, False])
def test_a_buffer_that_is_dry_while_the_gpu_idles(
    monkeypatch: pytest.MonkeyPatch, is_dry_an_error: bool
) -> None:
    """It is no device without samples: they are back with its work. Until then it is asked what it
    does now, and no later sample speaks of that time again."""
    monkeypatch.setattr(nvml_source, "has_opened_driver", lambda pid: True)
    fake = FakeNvml(gpm=False, is_dry_an_error=is_dry_an_error)
    source = NvmlSource(os.getpid(), fake)
    source.open()
    seen: list[Activity] = []
    for at_ms in range(0, 10_001, 50):
        if at_ms <= 2_000 or at_ms > 8_000:
            fake.buffer = [(1_000 * ms, 90) for ms in range(200, at_ms + 1, 200)]
        seen += activities(source.poll(at_ms * MS))
    source.close()
    assert [one.source for one in seen if one.busy == 40.0] == ["utilization"] * 25
    assert seen[-1].source == "samples", "it is back"
    assert sum(one.interval_ns for one in seen) <= 10_000 * MS
    assert max(one.interval_ns for one in seen) <= 1_400 * MS


def test_a_gpu_that_is_lost_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with polled(FakeNvml(lost={1}), monkeypatch) as seen:
        assert {gpu.index for gpu in activities(seen)} == {0}


def test_a_gpu_that_reports_nothing_of_its_memory_is_seen_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with polled(FakeNvml(fails="nvmlDeviceGetMemoryInfo"), monkeypatch) as seen:
        assert len(activities(seen)) > 10
        assert {one.gpus for one in seen if isinstance(one, GpusSeen)} == {()}


def test_without_samples_the_utilization(monkeypatch: pytest.MonkeyPatch) -> None:
    with polled(FakeNvml(gpm=False, fails="nvmlDeviceGetSamples"), monkeypatch) as seen:
        reported = activities(seen)
        assert len(reported) == 10
        assert {(gpu.source, gpu.busy, gpu.sm) for gpu in reported} == {("utilization", 40.0, None)}


def test_counters_that_are_refused_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_source, "host_engine", lambda: ("nv-hostengine", 812))
    fake = FakeNvml(fails="nvmlGpmSampleGet", buffer=[(200_000, 50), (400_000, 51)])
    with polled(fake, monkeypatch) as seen:
        (missing,) = [one for one in seen if isinstance(one, Missing)]
        assert "cannot be read" in missing.reason
        assert missing.fix == "nv-hostengine (pid 812) may hold the counters"


def test_how_the_gpu_is_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SimpleNamespace(pid=os.getpid(), usedGpuMemory=7)
    other = SimpleNamespace(pid=999_999_999, usedGpuMemory=3)
    fake = FakeNvml(running=[own, other])
    fake.used = [SimpleNamespace(pid=999_999_999, timeStamp=10, smUtil=35)]
    with polled(fake, monkeypatch) as seen:
        uses = [one for one in seen if isinstance(one, GpusSeen)]
        assert len(uses) == 3
        (gpu,) = uses[-1].gpus
        assert (gpu.power_w, gpu.power_limit_w, gpu.memory_clock_mhz) == (693.0, 700.0, 3201)
        assert gpu.target_memory_bytes == 7
        (found,) = gpu.others
        assert (found.pid, found.memory_bytes, found.sm_percent) == (999_999_999, 3, 35.0)


def test_what_takes_the_driver_long_is_asked_no_more_often_than_it_can_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeNvml(running=[SimpleNamespace(pid=os.getpid(), usedGpuMemory=7)])
    with polled(fake, monkeypatch) as seen:
        uses = [one.gpus[0] for one in seen if isinstance(one, GpusSeen)]
        assert [gpu.max_sm_clock_mhz for gpu in uses] == [1980] * 3
        assert fake.asked["nvmlDeviceGetMaxClockInfo"] == 1
        # Once a second, and to find out which devices are the target's.
        assert fake.asked["nvmlDeviceGetComputeRunningProcesses"] == 3 + 1
        assert fake.asked["nvmlDeviceGetProcessUtilization"] == 0
        assert uses[-1].others == ()


def test_where_nobody_can_be_distinguished_from_the_target_nobody_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeNvml(running=[SimpleNamespace(pid=1234567, usedGpuMemory=3)])
    with polled(fake, monkeypatch) as seen:
        uses = [one for one in seen if isinstance(one, GpusSeen)]
        assert uses[-1].gpus[0].others == ()
