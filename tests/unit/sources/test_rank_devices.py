"""Which GPU a rank uses, and what is read of it."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.tui.sources import rank_devices
from gpuwatch.tui.sources.rank_devices import FIND_NS, RankDevices
from tests.unit.sources.fake_nvml import FakeNvml, LibraryNotFound

OWN = os.getpid()
S = 1_000_000_000


def devices(nvml: FakeNvml) -> RankDevices:
    found = RankDevices(nvml)
    found.open()
    return found


def test_a_rank_is_found_by_its_pid_and_its_samples_are_means() -> None:
    nvml = FakeNvml(running=[SimpleNamespace(pid=OWN, usedGpuMemory=5)])
    found = devices(nvml)
    found.find({OWN: 0}, 0)
    for _ in range(5):
        found.sample()
    use = found.take(0)[OWN]
    assert (use.index, use.busy_percent, use.memory_bytes, use.total_bytes) == (0, 40.0, 10, 100)
    assert found.take(0)[OWN].busy_percent is None  # nothing was sampled since
    found.close()
    assert not nvml.open


@pytest.mark.parametrize(("opened", "local_rank", "found"), [(True, 0, True), (False, 0, False)])
def test_where_nvml_knows_no_pid_the_local_rank_decides(
    monkeypatch: pytest.MonkeyPatch, opened: bool, local_rank: int, found: bool
) -> None:
    monkeypatch.setattr(rank_devices, "has_opened_driver", lambda pid: opened)
    use = devices(FakeNvml())
    use.find({OWN: local_rank}, 0)
    assert (OWN in use.take(0)) is found


def test_who_else_is_on_a_device_is_counted_where_pids_are_known() -> None:
    other = SimpleNamespace(pid=1, usedGpuMemory=5)
    found = devices(FakeNvml(running=[SimpleNamespace(pid=OWN, usedGpuMemory=5), other]))
    found.find({OWN: 0}, 0)
    assert found.take(0)[OWN].others == 1


@pytest.mark.parametrize(
    ("used", "reported"),
    [
        ([], None),
        ([SimpleNamespace(pid=OWN, timeStamp=1, smUtil=60)], 0.0),
        ([SimpleNamespace(pid=pid, timeStamp=1, smUtil=40) for pid in (OWN, 1)], 40.0),
    ],
)
def test_what_others_use_of_a_ranks_device(
    used: list[SimpleNamespace], reported: float | None
) -> None:
    running = [SimpleNamespace(pid=pid, usedGpuMemory=5) for pid in (OWN, 1)]
    found = devices(FakeNvml(running=running, used=used))
    found.find({OWN: 0}, 0)
    assert found.take(0)[OWN].others_sm == reported


def test_nobody_is_asked_about_others_on_a_device_of_its_own() -> None:
    nvml = FakeNvml(running=[SimpleNamespace(pid=OWN, usedGpuMemory=5)])
    found = devices(nvml)
    found.find({OWN: 0}, 0)
    assert found.take(0)[OWN].others_sm == 0.0
    assert not nvml.asked["nvmlDeviceGetProcessUtilization"]


def test_the_look_for_devices_is_seldom() -> None:
    nvml = FakeNvml()
    found = devices(nvml)
    found.find({OWN: None}, 0)
    nvml.running = [SimpleNamespace(pid=OWN, usedGpuMemory=5)]
    found.find({OWN: None}, FIND_NS - 1)
    assert found.take(0) == {}
    found.find({OWN: None}, FIND_NS)
    assert list(found.take(0)) == [OWN]


def test_without_a_driver_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise LibraryNotFound

    nvml = FakeNvml()
    monkeypatch.setattr(nvml, "nvmlInit", none)
    found = devices(nvml)
    found.find({OWN: 0}, 0)
    found.sample()
    assert found.take(0) == {}
    found.close()


def test_the_devices_own_counters_are_means_between_two_looks() -> None:
    nvml = FakeNvml(running=[SimpleNamespace(pid=OWN, usedGpuMemory=5)])
    found = devices(nvml)
    found.find({OWN: 0}, 0)
    assert found.take(0)[OWN].sm_percent is None, "a reading is made from two samples"
    nvml.now_ns = S
    use = found.take(S)[OWN]
    assert (use.active_percent, use.sm_percent) == (90.0, 80.0)
    found.close()
    assert all(sample.freed for sample in nvml.samples)


@pytest.mark.parametrize("fields", [{"gpm": False}, {"fails": "nvmlGpmSampleGet"}])
def test_without_counters_a_rank_has_nvmls_figures(fields: dict[str, Any]) -> None:
    found = devices(FakeNvml(running=[SimpleNamespace(pid=OWN, usedGpuMemory=5)], **fields))
    found.find({OWN: 0}, 0)
    found.sample()
    for now_ns in (0, S):
        use = found.take(now_ns)[OWN]
        assert (use.active_percent, use.sm_percent, use.memory_bytes) == (None, None, 10)
    found.close()
