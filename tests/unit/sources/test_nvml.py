"""NVML through a stand-in for the driver's library."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.tui.discovery.command_lines import has_opened_driver, visible
from gpuwatch.tui.model.observations import GpusSeen, Missing
from gpuwatch.tui.sources import nvml
from gpuwatch.tui.sources.nvml import NvmlSource

UUIDS = ["GPU-aaaa", "GPU-bbbb", "GPU-bbcc"]


@pytest.mark.parametrize(
    ("variable", "chosen"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("GPU-bbbb", [1]),
        ("GPU-a", [0]),
        ("GPU-bb", []),
        ("0,-1,1", [0]),
        ("7", []),
    ],
)
def test_visible_devices(variable: str | None, chosen: list[int]) -> None:
    assert visible(variable, UUIDS) == chosen


class NVMLError(Exception):
    """As pynvml's."""


class LibraryNotFound(NVMLError):
    """As pynvml's NVMLError_LibraryNotFound."""


class NotFound(NVMLError):
    """As pynvml's NVMLError_NotFound."""


def driver(processes: dict[int, list[Any]]) -> Any:
    """A pynvml with three devices; `processes` run on them. Power cannot be asked."""

    def refuse(*_: Any) -> Any:
        raise NVMLError("not supported")

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVMLError_LibraryNotFound=LibraryNotFound,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        nvmlClocksThrottleReasonSwPowerCap=4,
        nvmlClocksThrottleReasonHwSlowdown=8,
        nvmlClocksThrottleReasonHwThermalSlowdown=64,
        nvmlClocksThrottleReasonSwThermalSlowdown=32,
        nvmlClocksThrottleReasonHwPowerBrakeSlowdown=128,
        NVMLError_NotFound=NotFound,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 3,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda device: UUIDS[device].encode(),
        nvmlDeviceGetName=lambda device: "NVIDIA H200",
        nvmlDeviceGetComputeRunningProcesses=lambda device: processes.get(device, []),
        nvmlDeviceGetUtilizationRates=lambda device: SimpleNamespace(gpu=40 + device),
        nvmlDeviceGetMemoryInfo=lambda device: SimpleNamespace(used=10, total=100),
        nvmlDeviceGetPowerUsage=refuse,
        nvmlDeviceGetTotalEnergyConsumption=refuse,
        nvmlDeviceGetEnforcedPowerLimit=refuse,
        nvmlDeviceGetSamples=refuse,
        nvmlDeviceGetProcessUtilization=refuse,
        NVML_GPU_UTILIZATION_SAMPLES=1,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda device: 4 | 32 | 64,
        nvmlDeviceGetClockInfo=lambda device, kind: 1980,
        nvmlDeviceGetMaxClockInfo=lambda device, kind: 1980,
        nvmlDeviceGetTemperature=lambda device, kind: 51,
        nvmlDeviceGetMaxPcieLinkGeneration=lambda device: 5,
        nvmlDeviceGetMaxPcieLinkWidth=refuse,
    )


def test_the_devices_that_hold_a_context_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "has_opened_driver", lambda pid: True)
    mine = SimpleNamespace(pid=os.getpid(), usedGpuMemory=7)
    monkeypatch.setitem(sys.modules, "pynvml", driver({1: [mine]}))
    source = NvmlSource(os.getpid())
    source.open()
    (seen,) = [one for one in source.poll(0) if isinstance(one, GpusSeen)]
    source.close()
    (gpu,) = seen.gpus
    assert (gpu.index, gpu.uuid, gpu.utilization_percent) == (1, "GPU-bbbb", 41.0)
    assert gpu.target_memory_bytes == 7
    assert gpu.power_w is None
    assert (gpu.pcie_generation, gpu.pcie_width) == (5, None)
    assert gpu.throttle_reasons == ("power cap", "too hot")


def test_no_driver_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise LibraryNotFound("library not found")

    library = driver({})
    library.nvmlInit = fail
    monkeypatch.setitem(sys.modules, "pynvml", library)
    source = NvmlSource(1)
    source.open()
    (missing,) = source.poll(0)
    assert isinstance(missing, Missing)
    assert "no NVIDIA driver" in missing.reason
    assert source.poll(1) == []
    source.close()


def test_a_process_that_never_opened_the_driver_uses_no_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", driver({}))
    source = NvmlSource(os.getpid())
    source.open()
    assert source.poll(0) == []
    source.close()
    folder = tmp_path / "7/fd"
    folder.mkdir(parents=True)
    (folder / "3").symlink_to("/dev/nvidia-uvm")
    assert has_opened_driver(7, tmp_path)
    assert not has_opened_driver(8, tmp_path)
