"""NVML's utilization: on every NVIDIA GPU, every 200 ms, and blind to how much of it is at work."""

from typing import Any, Final

from tui.observations import Activity

EVERY_NS: Final = 200_000_000
"""It changes so often on an H200."""


class SamplesReader:
    """NVML's own buffer of utilization samples: what was missed between two polls is there too.

    Raises NVML's error where the device keeps none.
    """

    source = "samples"

    def __init__(self, nvml: Any, device: Any, index: int) -> None:
        self._nvml = nvml
        self._device = device
        self._index = index
        self._last_us = 0
        self.due_ns = 0

    def read(self, now_ns: int) -> Activity | None:
        """The mean of the samples since the last reading; None when there is no new one."""
        if now_ns < self.due_ns:
            return None
        self.due_ns = now_ns + EVERY_NS
        nvml = self._nvml
        _, samples = nvml.nvmlDeviceGetSamples(
            self._device, nvml.NVML_GPU_UTILIZATION_SAMPLES, self._last_us
        )
        fresh = [sample for sample in samples if sample.timeStamp > self._last_us]
        first = self._last_us == 0
        if not fresh:
            return None
        since_us, self._last_us = self._last_us, fresh[-1].timeStamp
        if first:
            return None  # the past of before, at a pace that is not known
        values = [float(sample.sampleValue.uiVal) for sample in fresh]
        return Activity(
            index=self._index,
            source=self.source,
            interval_ns=max(1, 1_000 * (self._last_us - since_us)),
            busy=sum(values) / len(values),
        )

    def close(self) -> None:
        """Nothing is held."""


class UtilizationReader:
    """The utilization of this moment. Raises NVML's error where there is none."""

    source = "utilization"

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
        told = self._nvml.nvmlDeviceGetUtilizationRates(self._device)
        if before_ns is None:
            return None
        return Activity(
            index=self._index,
            source=self.source,
            interval_ns=now_ns - before_ns,
            busy=float(told.gpu),
        )

    def close(self) -> None:
        """Nothing is held."""
