"""Which GPU each rank of a job uses, and how busy it is: by NVML, a few microseconds a device, and
by the device's own counters, where it has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..discovery.command_lines import environ_of, has_opened_driver, visible
from ..discovery.targets import pids_inside
from ..model.observations import Activity
from .gpm import GpmReader
from .nvml import answer, devices_of, shares_of, uuids_of

FIND_NS: Final = 5_000_000_000
"""Between two looks at who is on which device."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One GPU since the last time."""

    index: int
    busy_percent: float | None
    memory_bytes: int | None
    total_bytes: int | None
    others: int | None
    """Processes on it that are none of the ranks'; None where NVML reports no pids."""
    others_sm: float | None
    """Percent of its time that these use together; None where it is not known."""
    active_percent: float | None = None
    """Of the time in which anything ran, and…"""
    sm_percent: float | None = None
    """…of its multiprocessors: by GPM, None without."""


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
        self._others: dict[int, frozenset[int] | None] = {}
        """Pids by device."""
        self._busy: dict[int, list[float]] = {}
        self._counters: dict[int, GpmReader | None] = {}
        """By device; None where it has none, or they cannot be read."""
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
        every = devices_of(self._nvml)
        holders = {index: self._holders(device) for index, device in every.items()}
        uuids = uuids_of(self._nvml, every)
        self._device_of = {}
        ours: set[int] = set()
        for pid, local_rank in local_ranks.items():
            own = set(pids_inside(pid))
            ours |= own
            device = next((index for index, pids in holders.items() if own & pids), None)
            if device is None and has_opened_driver(pid):
                device = _by_convention(pid, local_rank, uuids)
            if device is not None:
                self._device_of[pid] = device
        self._others = {
            index: frozenset(pids - ours) if pids & ours else None
            for index, pids in holders.items()
        }
        used = set(self._device_of.values())
        self._handles = {index: device for index, device in every.items() if index in used}
        for index, device in self._handles.items():
            if index not in self._counters:
                has = GpmReader.supported(self._nvml, device)
                self._counters[index] = GpmReader(self._nvml, device, index) if has else None

    def sample(self) -> None:
        """Read how busy every device is: the driver's figure, which changes every 200 ms."""
        for index, device in self._handles.items():
            rates = answer(self._nvml, self._nvml.nvmlDeviceGetUtilizationRates, device)
            if rates is not None:
                self._busy.setdefault(index, []).append(float(rates.gpu))

    def take(self, now_ns: int) -> dict[int, DeviceUse]:
        """By pid, what was sampled since the last time."""
        uses = {index: self._use(index, device, now_ns) for index, device in self._handles.items()}
        self._busy.clear()
        return {pid: uses[index] for pid, index in self._device_of.items()}

    def close(self) -> None:
        """End the session."""
        for index in list(self._counters):
            self._without_counters(index)
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None

    def _holders(self, device: Any) -> set[int]:
        running = answer(self._nvml, self._nvml.nvmlDeviceGetComputeRunningProcesses, device)
        return {entry.pid for entry in running or []}

    def _use(self, index: int, device: Any, now_ns: int) -> DeviceUse:
        memory = answer(self._nvml, self._nvml.nvmlDeviceGetMemoryInfo, device)
        busy, others = self._busy.get(index), self._others.get(index)
        counted = self._counted(index, now_ns)
        return DeviceUse(
            index=index,
            busy_percent=sum(busy) / len(busy) if busy else None,
            memory_bytes=None if memory is None else memory.used,
            total_bytes=None if memory is None else memory.total,
            others=None if others is None else len(others),
            others_sm=None if others is None else self._used_by(others, device),
            active_percent=None if counted is None else counted.busy,
            sm_percent=None if counted is None else counted.sm,
        )

    def _counted(self, index: int, now_ns: int) -> Activity | None:
        """By the device's own counters since the last time."""
        reader = self._counters.get(index)
        if reader is None:
            return None
        try:
            return reader.read(now_ns)
        except self._nvml.NVMLError:
            self._without_counters(index)
            return None

    def _without_counters(self, index: int) -> None:
        reader, self._counters[index] = self._counters.get(index), None
        if reader is not None:
            try:
                reader.close()
            except self._nvml.NVMLError:
                pass  # a device that has fallen off the bus takes its samples with it

    def _used_by(self, pids: frozenset[int], device: Any) -> float | None:
        """NVML lists only processes that did anything."""
        if not pids:
            return 0.0
        used = shares_of(self._nvml, device)
        return min(100.0, sum(used.get(pid, 0.0) for pid in pids)) if used else None


def _by_convention(pid: int, local_rank: int | None, uuids: list[str]) -> int | None:
    """In a container NVML names processes by pids that nobody in there knows. Then the device that
    a rank takes: the only one that it may see, or the one with its local number."""
    chosen = visible(environ_of(pid).get("CUDA_VISIBLE_DEVICES"), uuids)
    if len(chosen) == 1:
        return chosen[0]
    return chosen[local_rank] if local_rank is not None and local_rank < len(chosen) else None
