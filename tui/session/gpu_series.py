"""What each GPU did and how it was, over the last hour."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from tui.observations import ActivitySeen, GpusSeen
from tui.over_time.growing import Growing
from tui.over_time.series import Series

NAMES: Final = {"gpm": "gpm", "samples": "nvml", "utilization": "nvml"}
"""What people call the sources of `Activity`."""
USE_NS: Final = 1_000_000_000
"""NVML's slow figures are read once a second."""


@dataclass(frozen=True, slots=True)
class _Quantity:
    """One field of a reading, as a series."""

    field: str
    name: str
    title: str
    unit: str


DONE: Final = (
    _Quantity("sm", "sm", "SM active", "%"),
    _Quantity("busy", "busy", "GPU busy", "%"),
    _Quantity("occupancy", "occupancy", "occupancy", "%"),
    _Quantity("tensor", "tensor", "tensor cores", "%"),
    _Quantity("fp32", "fp32", "FP32", "%"),
    _Quantity("dram", "dram", "DRAM bandwidth", "%"),
    _Quantity("pcie_rx_mb_s", "pcie_rx", "PCIe to the GPU", "MB/s"),
    _Quantity("pcie_tx_mb_s", "pcie_tx", "PCIe from the GPU", "MB/s"),
    _Quantity("nvlink_rx_mb_s", "nvlink_rx", "NVLink received", "MB/s"),
    _Quantity("nvlink_tx_mb_s", "nvlink_tx", "NVLink sent", "MB/s"),
)
BEING: Final = (
    _Quantity("power_w", "power", "power", "W"),
    _Quantity("sm_clock_mhz", "sm_clock", "SM clock", "MHz"),
    _Quantity("memory_clock_mhz", "memory_clock", "memory clock", "MHz"),
    _Quantity("temperature_c", "temperature", "temperature", "°C"),
    _Quantity("memory_used_bytes", "memory_used", "memory used", "bytes"),
)
READ: Final = {one.field: attrgetter(one.field) for one in (*DONE, *BEING)}
ORDER: Final = {one.name: at for at, one in enumerate((*DONE, *BEING))}


class GpuSeries:
    """A series for every figure of every GPU that was ever told."""

    def __init__(self) -> None:
        self._growing: dict[tuple[int, str, str], Growing] = {}
        """By device, name and source: what another source says goes on elsewhere."""

    def did(self, seen: ActivitySeen, interval_ns: int) -> None:
        """A reading of what they did; `interval_ns`: how far apart the readings are."""
        for gpu in seen.gpus:
            source = NAMES.get(gpu.source, gpu.source)
            for one in DONE:
                if (value := READ[one.field](gpu)) is not None:
                    growing = self._of(one, gpu.index, source, interval_ns)
                    growing.add(seen.t_ns, value, gpu.interval_ns)

    def were(self, seen: GpusSeen) -> None:
        """A reading of how they are."""
        for gpu in seen.gpus:
            for one in BEING:
                if (value := READ[one.field](gpu)) is not None:
                    self._of(one, gpu.index, "nvml", USE_NS).add(seen.t_ns, float(value))

    def all(self) -> tuple[Series, ...]:
        """By device, in the order of the tables above; of two sources that of the newer sample."""
        newest: dict[tuple[int, str], Series] = {}
        for (device, name, _), growing in self._growing.items():
            series, other = growing.series(), newest.get((device, name))
            if other is None or series.end_ns > other.end_ns:
                newest[device, name] = series
        return tuple(newest[key] for key in sorted(newest, key=_place))

    def _of(self, one: _Quantity, device: int, source: str, interval_ns: int) -> Growing:
        key = (device, one.name, source)
        if key not in self._growing:
            self._growing[key] = Growing(one.name, one.title, one.unit, source, device, interval_ns)
        growing = self._growing[key]
        growing.interval_ns = interval_ns
        return growing


def _place(key: tuple[int, str]) -> tuple[int, int]:
    device, name = key
    return device, ORDER[name]
