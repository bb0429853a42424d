"""GPM: a GPU's own performance counters, without privileges or a daemon (Hopper and newer).

A reading is made from two samples. The device refreshes its counters about every 100 ms; a pair
that lies closer reads 0 everywhere and NaN for the memory, which says nothing about the GPU
(seen on an H200). A sample holds the counters of the last refresh, so its time is right only when
it is taken just after one: the reader comes a little early now and then, and where that was too
early it knows the moment of the refresh.
"""

from math import isnan
from typing import Any, Final

from ..model.observations import Activity

REFRESH_NS: Final = 100_000_000
"""How often the device refreshes its counters, on an H200."""
EARLY_NS: Final = 10_000_000
"""A sample's time is right to this."""
TRIES: Final = 3
"""After as many in a row that were too early, it is not the moment that is wrong."""
READINGS_A_LOOK: Final = 10
"""Once a second the reader looks again when the refresh comes: clocks drift, and a look costs a
call that reads nothing."""
STALE_NS: Final = 5_000_000_000
"""Fifty refreshes: after as long without one, there will be none soon."""

METRICS: Final = {
    "busy": "NVML_GPM_METRIC_GRAPHICS_UTIL",
    "sm": "NVML_GPM_METRIC_SM_UTIL",
    "occupancy": "NVML_GPM_METRIC_SM_OCCUPANCY",
    "tensor": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "fp32": "NVML_GPM_METRIC_FP32_UTIL",
    "dram": "NVML_GPM_METRIC_DRAM_BW_UTIL",
    "pcie_rx_mb_s": "NVML_GPM_METRIC_PCIE_RX_PER_SEC",
    "pcie_tx_mb_s": "NVML_GPM_METRIC_PCIE_TX_PER_SEC",
    "nvlink_rx_mb_s": "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC",
    "nvlink_tx_mb_s": "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC",
}
"""Fields of `Activity`, and NVML's names."""


class GpmReader:
    """The counters of one device. Raises NVML's error where they cannot be read."""

    source: Final = "gpm"

    def __init__(self, nvml: Any, device: Any, index: int) -> None:
        self._nvml = nvml
        self._device = device
        self._index = index
        self._names = [name for name in METRICS if hasattr(nvml, METRICS[name])]
        self._before: tuple[int, Any] | None = None
        """The older sample and when it was taken."""
        self._spare: Any = None
        self._since_look = READINGS_A_LOOK
        """Readings since the moment of the refresh was known."""
        self.due_ns = 0
        """When the next sample is worth taking."""
        self.is_stale = False
        """The device has not refreshed its counters for long."""

    @staticmethod
    def supported(nvml: Any, device: Any) -> bool:
        """Whether the device has the counters, and the driver the calls."""
        try:
            return bool(nvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice)
        except (nvml.NVMLError, AttributeError):
            return False

    def read(self, now_ns: int) -> Activity | None:
        """What the device did since the last reading; None while there is no pair, or when the
        counters were not refreshed in between: the next reading then covers both."""
        if now_ns < self.due_ns:
            return None
        sample = self._spare = self._spare or self._nvml.nvmlGpmSampleAlloc()
        self._nvml.nvmlGpmSampleGet(self._device, sample)
        if self._before is None:
            self._before, self._spare = (now_ns, sample), None
            self.due_ns = now_ns + REFRESH_NS
            return None
        began_ns, older = self._before
        values = self._between(older, sample)
        if not was_refreshed(values):
            self.is_stale = now_ns - began_ns >= STALE_NS
            self._since_look = 0
            soon = now_ns - began_ns < REFRESH_NS + TRIES * EARLY_NS
            self.due_ns = now_ns + (EARLY_NS if soon else REFRESH_NS)
            return None
        self.is_stale = False
        self._since_look += 1
        early_ns = EARLY_NS if self._since_look >= READINGS_A_LOOK else 0
        self.due_ns = now_ns + REFRESH_NS - early_ns
        self._before, self._spare = (now_ns, sample), older
        known = {name: _figure(name, value) for name, value in values.items()}
        return Activity(
            index=self._index,
            source=self.source,
            interval_ns=now_ns - began_ns,
            busy=known.pop("busy", None),
            **known,
        )

    def close(self) -> None:
        """Give the samples back."""
        held = [self._spare, self._before[1] if self._before else None]
        self._spare = self._before = None
        for sample in held:
            if sample is not None:
                self._nvml.nvmlGpmSampleFree(sample)

    def _between(self, older: Any, newer: Any) -> dict[str, float]:
        """Every metric over the pair, NaN where the device does not report it."""
        nvml = self._nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        asked.sample1, asked.sample2 = older, newer
        asked.numMetrics = len(self._names)
        for at, name in enumerate(self._names):
            asked.metrics[at].metricId = getattr(nvml, METRICS[name])
        nvml.nvmlGpmMetricsGet(asked)
        values = {}
        for at, name in enumerate(self._names):
            metric = asked.metrics[at]
            values[name] = metric.value if metric.nvmlReturn == 0 else float("nan")
        return values


def _figure(name: str, value: float) -> float | None:
    """NaN is no figure; a share that rounds to a little over 100 is 100."""
    if isnan(value):
        return None
    return value if name.endswith("_mb_s") else min(max(value, 0.0), 100.0)


def was_refreshed(values: dict[str, float]) -> bool:
    """Whether a pair says anything: one that was not refreshed is 0 throughout, with a NaN. Real
    idleness has no NaN."""
    percents = [values[name] for name in ("busy", "sm", "tensor", "fp32", "dram") if name in values]
    nothing = all(isnan(value) or value == 0 for value in percents)
    return not (nothing and isnan(values.get("dram", 0.0)))


# NVML's utilization: on every NVIDIA GPU, every 200 ms, and blind to how much of it is at work.

EVERY_NS: Final = 200_000_000
"""It changes so often on an H200."""
DRY_NS: Final = 1_000_000_000
"""Without a new sample for so long the buffer is dry; seen for minutes of an idle GPU
(polarsignals/gpu-metrics-agent#37)."""


class SamplesReader:
    """NVML's own buffer of utilization samples: what was missed between two polls is there too.

    It runs dry while the GPU idles: NVML then finds nothing, or nothing new, and says what the
    device does now. Raises NVML's error where the device keeps no buffer.
    """

    source: Final = "samples"

    def __init__(self, nvml: Any, device: Any, index: int) -> None:
        self._nvml = nvml
        self._device = device
        self._index = index
        self._last_us = 0
        self._fresh_ns: int | None = None
        """When there was something new."""
        self._reported_ns = 0
        """Up to when the last reading speaks."""
        self._instead = UtilizationReader(nvml, device, index)
        self.due_ns = 0

    def read(self, now_ns: int) -> Activity | None:
        """The mean of the samples since the last reading; None when there is no new one."""
        if now_ns < self.due_ns:
            return None
        self.due_ns = now_ns + EVERY_NS
        fresh = self._new_samples()
        first = self._last_us == 0
        if not fresh:
            return self._while_dry(now_ns)
        self._fresh_ns = now_ns
        since_us, self._last_us = self._last_us, fresh[-1].timeStamp
        reported_ns, self._reported_ns = self._reported_ns, now_ns
        if first:
            return None  # the past of before, at a pace that is not known
        values = [float(sample.sampleValue.uiVal) for sample in fresh]
        return Activity(
            index=self._index,
            source=self.source,
            interval_ns=max(1, min(1_000 * (self._last_us - since_us), now_ns - reported_ns)),
            busy=sum(values) / len(values),
        )

    def _while_dry(self, now_ns: int) -> Activity | None:
        if self._fresh_ns is None:
            self._fresh_ns = now_ns
        if now_ns - self._fresh_ns < DRY_NS:
            self._instead = UtilizationReader(self._nvml, self._device, self._index)
            return None
        seen = self._instead.read(now_ns)
        self._reported_ns = now_ns if seen is not None else self._reported_ns
        return seen

    def _new_samples(self) -> list[Any]:
        nvml = self._nvml
        try:
            _, samples = nvml.nvmlDeviceGetSamples(
                self._device, nvml.NVML_GPU_UTILIZATION_SAMPLES, self._last_us
            )
        except nvml.NVMLError_NotFound:
            return []
        return [sample for sample in samples if sample.timeStamp > self._last_us]

    def close(self) -> None:
        """Nothing is held."""


class UtilizationReader:
    """The utilization of this moment. Raises NVML's error where there is none."""

    source: Final = "utilization"

    def __init__(self, nvml: Any, device: Any, index: int) -> None:
        self._nvml = nvml
        self._device = device
        self._index = index
        self._before_ns: int | None = None
        self.due_ns = 0

    def read(self, now_ns: int) -> Activity | None:
        """What NVML says now, of the time since the last reading."""
        if now_ns < self.due_ns:
            return None
        self.due_ns = now_ns + EVERY_NS
        before_ns, self._before_ns = self._before_ns, now_ns
        rates = self._nvml.nvmlDeviceGetUtilizationRates(self._device)
        if before_ns is None:
            return None
        return Activity(
            index=self._index,
            source=self.source,
            interval_ns=now_ns - before_ns,
            busy=float(rates.gpu),
        )

    def close(self) -> None:
        """Nothing is held."""


# The best source of activity that a device has: GPM, NVML's samples, NVML's utilization.

Reader = GpmReader | SamplesReader | UtilizationReader
NO_GPM: Final = "needs Hopper or newer"
INSTEAD: Final = (
    "NVML's utilization stands in, ~1 s average: blind to how much of the GPU is at work, and to "
    "steps under ~2 s"
)
STALE: Final = "the device does not refresh its counters"


class Ladder:
    """One device. A rung that fails is left for good, and why is kept."""

    def __init__(self, nvml: Any, device: Any, index: int) -> None:
        self._nvml = nvml
        self._device = device
        self._index = index
        self._rungs: list[type[Reader]] = [GpmReader, SamplesReader, UtilizationReader]
        self._why = ""
        if not GpmReader.supported(nvml, device):
            self._rungs.pop(0)
            self._why = NO_GPM
        self._reader: Reader = self._rungs[0](nvml, device, index)

    @property
    def why(self) -> str:
        """Why there is no GPM; "" while there is."""
        stale = isinstance(self._reader, GpmReader) and self._reader.is_stale
        return STALE if stale else self._why

    @property
    def instead(self) -> str:
        """What stands in for GPM; "" where nothing does."""
        return "" if isinstance(self._reader, GpmReader) else INSTEAD

    @property
    def due_ns(self) -> int:
        """When to read next."""
        return self._reader.due_ns

    def read(self, now_ns: int) -> Activity | None:
        """What the device did since the last reading; None when nothing new is known."""
        while self._rungs:
            try:
                return self._reader.read(now_ns)
            except self._nvml.NVMLError as error:
                self._step_down(error)
        return None

    def close(self) -> None:
        """Let go of what the device's reader holds."""
        try:
            self._reader.close()
        except self._nvml.NVMLError:
            pass  # a device that has fallen off the bus takes its samples with it

    def _step_down(self, error: Exception) -> None:
        self.close()
        if self._rungs.pop(0) is GpmReader:
            self._why = f"the counters cannot be read ({error})"
        if self._rungs:
            self._reader = self._rungs[0](self._nvml, self._device, self._index)
