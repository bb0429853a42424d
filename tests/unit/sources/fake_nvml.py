"""A driver's library with one device: its counters refresh every 100 ms, as an H200's do."""

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

REFRESH_NS = 100_000_000
METRICS = {
    "NVML_GPM_METRIC_GRAPHICS_UTIL": 1,
    "NVML_GPM_METRIC_SM_UTIL": 2,
    "NVML_GPM_METRIC_SM_OCCUPANCY": 3,
    "NVML_GPM_METRIC_ANY_TENSOR_UTIL": 5,
    "NVML_GPM_METRIC_DRAM_BW_UTIL": 10,
    "NVML_GPM_METRIC_FP32_UTIL": 12,
    "NVML_GPM_METRIC_PCIE_TX_PER_SEC": 20,
    "NVML_GPM_METRIC_PCIE_RX_PER_SEC": 21,
}


class NVMLError(Exception):
    """As pynvml's."""


class LibraryNotFound(NVMLError):
    """As pynvml's NVMLError_LibraryNotFound."""


class NotFound(NVMLError):
    """As pynvml's NVMLError_NotFound: nothing of what was asked for."""


@dataclass
class Sample:
    """The counters at their last refresh."""

    at: int = -1
    freed: bool = False


@dataclass
class FakeNvml:
    """What `NvmlSource` asks of pynvml."""

    now_ns: int = 0
    gpm: bool = True
    fails: str = ""
    """Name of a call that the device refuses."""
    values: dict[int, float] = field(default_factory=lambda: {1: 90.0, 2: 80.0, 5: 60.0, 10: 30.0})
    """Metrics by number; the others are 0."""
    refused: set[int] = field(default_factory=set)
    """Metrics that the device does not report."""
    running: list[Any] = field(default_factory=list)
    used: list[Any] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    buffer: list[tuple[int, int]] = field(default_factory=list)
    """(us, percent) of NVML's own utilization samples."""
    is_dry_an_error: bool = True
    """Where there is no new sample; else there are none in its answer."""
    lost: set[int] = field(default_factory=set)
    """Devices that have fallen off their bus."""
    metrics_read: int = 0
    """Calls that are not free."""
    asked: "Counter[str]" = field(default_factory=Counter)
    """Those of the slow calls: a quarter of a millisecond to one and a half on an H200."""
    open: bool = False

    NVMLError = NVMLError
    NVMLError_LibraryNotFound = LibraryNotFound
    NVMLError_NotFound = NotFound
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0
    NVML_GPU_UTILIZATION_SAMPLES = 1
    NVML_GPM_METRICS_GET_VERSION = 1
    nvmlClocksThrottleReasonSwPowerCap = 4
    nvmlClocksThrottleReasonHwSlowdown = 8
    nvmlClocksThrottleReasonHwThermalSlowdown = 64
    nvmlClocksThrottleReasonSwThermalSlowdown = 32
    nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 128

    def __getattr__(self, name: str) -> Any:
        if name in METRICS:
            return METRICS[name]
        raise AttributeError(name)

    def _may(self, name: str) -> None:
        if self.fails == name:
            raise NVMLError("refused")

    def nvmlInit(self) -> None:
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return max(self.lost, default=0) + 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.lost:
            raise NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetUUID(self, device: int) -> str:
        return "GPU-aaaa"

    def nvmlDeviceGetName(self, device: int) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[Any]:
        self.asked["nvmlDeviceGetComputeRunningProcesses"] += 1
        return self.running

    def nvmlDeviceGetProcessUtilization(self, device: int, since: int) -> list[Any]:
        self.asked["nvmlDeviceGetProcessUtilization"] += 1
        return self.used

    def nvmlDeviceGetUtilizationRates(self, device: int) -> Any:
        self._may("nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(gpu=40)

    def nvmlDeviceGetSamples(self, device: int, kind: int, since_us: int) -> Any:
        self._may("nvmlDeviceGetSamples")
        fresh = [entry for entry in self.buffer if entry[0] > since_us]
        if not fresh and self.is_dry_an_error:
            raise NotFound("no samples")
        value = SimpleNamespace
        return 1, [value(timeStamp=t, sampleValue=value(uiVal=v)) for t, v in fresh]

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        self._may("nvmlDeviceGetMemoryInfo")
        return SimpleNamespace(used=10, total=100)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:
        return 693_000

    def nvmlDeviceGetTotalEnergyConsumption(self, device: int) -> int:
        return 12_345_600

    def nvmlDeviceGetEnforcedPowerLimit(self, device: int) -> int:
        return 700_000

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: int) -> int:
        return 4

    def nvmlDeviceGetClockInfo(self, device: int, kind: int) -> int:
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetMaxPcieLinkGeneration(self, device: int) -> int:
        return 5

    def nvmlDeviceGetMaxPcieLinkWidth(self, device: int) -> int:
        return 16

    def nvmlDeviceGetMaxClockInfo(self, device: int, kind: int) -> int:
        self.asked["nvmlDeviceGetMaxClockInfo"] += 1
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetTemperature(self, device: int, kind: int) -> int:
        return 51

    def nvmlGpmQueryDeviceSupport(self, device: int) -> Any:
        return SimpleNamespace(isSupportedDevice=int(self.gpm))

    def nvmlGpmSampleAlloc(self) -> Sample:
        self.samples.append(Sample())
        return self.samples[-1]

    def nvmlGpmSampleGet(self, device: int, sample: Sample) -> Sample:
        self._may("nvmlGpmSampleGet")
        sample.at = self.now_ns // REFRESH_NS
        return sample

    def nvmlGpmSampleFree(self, sample: Sample) -> None:
        assert not sample.freed
        sample.freed = True

    def c_nvmlGpmMetricsGet_t(self) -> Any:
        metrics = [SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(64)]
        return SimpleNamespace(metrics=metrics)

    def nvmlGpmMetricsGet(self, asked: Any) -> Any:
        self.metrics_read += 1
        refreshed = asked.sample2.at > asked.sample1.at
        for metric in asked.metrics[: asked.numMetrics]:
            metric.nvmlReturn = int(metric.metricId in self.refused)
            metric.value = self.values.get(metric.metricId, 0.0) if refreshed else 0.0
            if not refreshed and metric.metricId == METRICS["NVML_GPM_METRIC_DRAM_BW_UTIL"]:
                metric.value = float("nan")
        return asked
