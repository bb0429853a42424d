"""Which GPU each rank uses, and how busy it is: by NVML, a few microseconds a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tui.sources.gpu_target import environ_of, has_opened_driver, visible
from tui.sources.nvml_answer import answer
from tui.targets import pids_inside

FIND_NS: Final = 5_000_000_000
"""Between two looks at who is on which device."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One GPU since the last time."""

    index: int
    busy_percent: float | None
    memory_bytes: int | None
    total_bytes: int | None


class RankDevices:
    """One NVML session of its own. Without a driver there are no devices: `NvmlSource` says why.

    `nvml` stands in for the library in tests.
    """

    def __init__(self, nvml: Any = None) -> None:
        self._given = nvml
        self._nvml: Any = None
        self._handles: dict[int, Any] = {}
        self._device_of: dict[int, int] = {}
        """Device by pid."""
        self._busy: dict[int, list[float]] = {}
        self._find_ns = 0

    def open(self) -> None:
        """Load the driver's library, where there is one."""
        if self._given is None:
            import pynvml

            self._given = pynvml
        try:
            self._given.nvmlInit()
        except self._given.NVMLError:
            return
        self._nvml = self._given

    def find(self, local_ranks: Mapping[int, int | None], now_ns: int) -> None:
        """Look now and then which device each of these processes uses: local rank by pid."""
        if self._nvml is None or now_ns < self._find_ns:
            return
        self._find_ns = now_ns + FIND_NS
        nvml = self._nvml
        every = {
            index: nvml.nvmlDeviceGetHandleByIndex(index)
            for index in range(nvml.nvmlDeviceGetCount())
        }
        holders = {index: self._holders(device) for index, device in every.items()}
        uuids = [_text(nvml.nvmlDeviceGetUUID(device)) for device in every.values()]
        self._device_of = {}
        for pid, local_rank in local_ranks.items():
            own = set(pids_inside(pid))
            device = next((index for index, pids in holders.items() if own & pids), None)
            if device is None and has_opened_driver(pid):
                device = _by_convention(pid, local_rank, uuids)
            if device is not None:
                self._device_of[pid] = device
        used = set(self._device_of.values())
        self._handles = {index: device for index, device in every.items() if index in used}

    def sample(self) -> None:
        """Read how busy every device is: the driver's figure, which changes every 200 ms."""
        for index, device in self._handles.items():
            rates = answer(self._nvml, self._nvml.nvmlDeviceGetUtilizationRates, device)
            if rates is not None:
                self._busy.setdefault(index, []).append(float(rates.gpu))

    def take(self) -> dict[int, DeviceUse]:
        """By pid, what was sampled since the last time."""
        uses = {index: self._use(index, device) for index, device in self._handles.items()}
        self._busy.clear()
        return {pid: uses[index] for pid, index in self._device_of.items()}

    def close(self) -> None:
        """End the session."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None

    def _holders(self, device: Any) -> set[int]:
        running = answer(self._nvml, self._nvml.nvmlDeviceGetComputeRunningProcesses, device)
        return {entry.pid for entry in running or []}

    def _use(self, index: int, device: Any) -> DeviceUse:
        memory = answer(self._nvml, self._nvml.nvmlDeviceGetMemoryInfo, device)
        busy = self._busy.get(index)
        return DeviceUse(
            index=index,
            busy_percent=sum(busy) / len(busy) if busy else None,
            memory_bytes=None if memory is None else memory.used,
            total_bytes=None if memory is None else memory.total,
        )


def _by_convention(pid: int, local_rank: int | None, uuids: list[str]) -> int | None:
    """In a container NVML names processes by pids that nobody in there knows. Then the device that
    a rank is meant to take: the only one that it may see, or the one with its local number."""
    chosen = visible(environ_of(pid).get("CUDA_VISIBLE_DEVICES"), uuids)
    if len(chosen) == 1:
        return chosen[0]
    return chosen[local_rank] if local_rank is not None and local_rank < len(chosen) else None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
