"""The GPUs that the target uses, by NVML: what they do every 100 ms, how they are every second."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..discovery.command_lines import environ_of, has_opened_driver, visible
from ..discovery.targets import pids_inside
from ..model.observations import (
    Activity,
    ActivitySeen,
    AnyObservation,
    GpusSeen,
    GpuUse,
    Missing,
    OtherProcess,
)
from .gpm import Ladder

# A DCGM host engine: on Hopper it reads the same counters as we do.

ENGINES: Final = ("nv-hostengine", "dcgm-exporter")


def host_engine(proc: Path = Path("/proc")) -> tuple[str, int] | None:
    """(name, pid) of one that runs here; None without."""
    for process in proc.iterdir():
        if process.name.isdecimal():
            try:
                name = (process / "comm").read_text(errors="replace").strip()
            except OSError:
                continue
            for engine in ENGINES:
                if engine.startswith(name) and name:  # the kernel keeps 15 characters
                    return engine, int(process.name)
    return None


def answer(nvml: Any, call: Any, *arguments: Any) -> Any:
    """What a device answers, or None where it does not support the question."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


@dataclass(frozen=True, slots=True)
class Nameplate:
    """Of one device."""

    uuid: str
    name: str
    max_sm_clock_mhz: int | None
    """None where the device does not report it, as the two below."""
    pcie_generation: int | None
    pcie_width: int | None


def nameplate_of(nvml: Any, device: Any) -> Nameplate:
    """Ask a device who it is."""
    return Nameplate(
        uuid=text_of(nvml.nvmlDeviceGetUUID(device)),
        name=text_of(nvml.nvmlDeviceGetName(device)),
        max_sm_clock_mhz=answer(nvml, nvml.nvmlDeviceGetMaxClockInfo, device, nvml.NVML_CLOCK_SM),
        pcie_generation=answer(nvml, nvml.nvmlDeviceGetMaxPcieLinkGeneration, device),
        pcie_width=answer(nvml, nvml.nvmlDeviceGetMaxPcieLinkWidth, device),
    )


def devices_of(nvml: Any) -> dict[int, Any]:
    """By NVML's index. One that has fallen off its bus, or may not be asked, takes none of the
    others with it."""
    asked = (
        (index, answer(nvml, nvml.nvmlDeviceGetHandleByIndex, index))
        for index in range(nvml.nvmlDeviceGetCount())
    )
    return {index: device for index, device in asked if device is not None}


def uuids_of(nvml: Any, devices: Mapping[int, Any]) -> list[str]:
    """By index, "" of those that do not answer."""
    every = [""] * nvml.nvmlDeviceGetCount()
    for index, device in devices.items():
        every[index] = text_of(answer(nvml, nvml.nvmlDeviceGetUUID, device) or "")
    return every


def text_of(value: str | bytes) -> str:
    """Older libraries return bytes."""
    return value.decode() if isinstance(value, bytes) else value


# Other processes on a GPU.

RECENT_US: Final = 5_000_000
"""Samples of each process's use are averaged over so long."""


def others_on(
    nvml: Any, device: Any, running: Sequence[Any], own: set[int]
) -> tuple[OtherProcess, ...]:
    """Of the processes with a context on the device those that are not the target's, the largest
    first.

    `own` are the target's pids in all the namespaces that it lives in. Where NVML names the target
    by none of them (in a container it may not), it cannot be separated, and all are left out.
    """
    strange = [entry for entry in running if entry.pid not in own]
    if not strange or len(strange) == len(running):
        return ()
    used = shares_of(nvml, device)
    others = [
        OtherProcess(
            pid=entry.pid,
            name=_name_of(entry.pid),
            memory_bytes=entry.usedGpuMemory,
            # NVML lists only processes that did anything.
            sm_percent=used.get(entry.pid, 0.0) if used else None,
        )
        for entry in strange
    ]
    return tuple(sorted(others, key=lambda other: -(other.memory_bytes or 0)))


def shares_of(nvml: Any, device: Any) -> dict[int, float]:
    """Percent of the device's time by pid, the mean of the last seconds."""
    samples = answer(nvml, nvml.nvmlDeviceGetProcessUtilization, device, 0) or []
    newest = max((sample.timeStamp for sample in samples), default=0)
    sums: dict[int, list[float]] = {}
    for sample in samples:
        if newest - sample.timeStamp <= RECENT_US:
            sums.setdefault(sample.pid, []).append(float(sample.smUtil))
    return {pid: sum(values) / len(values) for pid, values in sums.items()}


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


SOONEST_NS: Final = 2_000_000
LATEST_NS: Final = 50_000_000
"""Between two polls: as its readers ask for it, within these."""
USE_NS: Final = 1_000_000_000
"""Memory, clocks, power and temperature move slowly."""
FIND_NS: Final = 5_000_000_000
"""A process gets its first CUDA context some seconds after its start."""
FIRST_FIND_NS: Final = 500_000_000
"""…and until then is asked more often."""

THROTTLES: Final = {
    "nvmlClocksThrottleReasonSwPowerCap": "power cap",
    "nvmlClocksThrottleReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "too hot",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "too hot",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}

NO_DRIVER: Final = (
    "no NVIDIA driver found (libnvidia-ml.so.1): steps, CPU and stacks work without it"
)


class NvmlSource:
    """One NVML session. Without a driver it reports that once.

    `nvml` stands in for the library in tests.
    """

    name: Final = "nvml"

    def __init__(self, pid: int, nvml: Any = None) -> None:
        self._pid = pid
        self._pids = set(pids_inside(pid))
        self._visible = environ_of(pid).get("CUDA_VISIBLE_DEVICES")
        self._given = nvml
        self._nvml: Any = None
        self._why = ""
        self._reported = False
        self._without_gpm_because = ""
        self._devices: list[tuple[int, Any]] = []
        self._ladders: dict[int, Ladder] = {}
        self._nameplates: dict[int, Nameplate] = {}
        self._find_ns = 0
        self._use_ns = 0
        self._polled_ns = 0

    @property
    def interval_ns(self) -> int:
        """Until the next reading is due; where there is nothing to read, the next search."""
        if not self._devices:
            return FIRST_FIND_NS
        due_ns = min((self._ladders[index].due_ns for index, _ in self._devices), default=0)
        wait_ns = due_ns - self._polled_ns if due_ns else LATEST_NS
        return min(max(wait_ns, SOONEST_NS), LATEST_NS)

    def open(self) -> None:
        """Load the driver's library."""
        if self._given is None:
            import pynvml

            self._given = pynvml
        nvml = self._given
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            missing = isinstance(error, nvml.NVMLError_LibraryNotFound)
            self._why = NO_DRIVER if missing else f"the NVIDIA driver does not answer: {error}"
        else:
            self._nvml = nvml

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """The GPUs as they are now."""
        self._polled_ns = now_ns
        if self._nvml is None:
            if self._reported:
                return []
            self._reported = True
            return [Missing(t_ns=now_ns, source=self.name, reason=self._why)]
        if not self._devices:
            self._find(now_ns)
        seen: list[AnyObservation] = []
        if read := self._read(now_ns):
            seen.append(ActivitySeen(t_ns=now_ns, gpus=read))
        self._find(now_ns)  # after the reading, whose time would be wrong by what this takes
        seen += self._without_gpm(now_ns)
        if self._devices and now_ns >= self._use_ns:
            self._use_ns = now_ns + USE_NS
            asked = (self._use(index, device) for index, device in self._devices)
            uses = tuple(one for one in asked if one is not None)
            seen.append(GpusSeen(t_ns=now_ns, gpus=uses))
        return seen

    def close(self) -> None:
        """End the session."""
        for ladder in self._ladders.values():
            ladder.close()
        self._ladders.clear()
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None

    def _find(self, now_ns: int) -> None:
        if now_ns < self._find_ns:
            return
        self._devices = self._used_devices()
        self._find_ns = now_ns + (FIND_NS if self._devices else FIRST_FIND_NS)
        for index, device in self._devices:
            if index not in self._ladders:
                self._ladders[index] = Ladder(self._nvml, device, index)
                self._nameplates[index] = nameplate_of(self._nvml, device)

    def _read(self, now_ns: int) -> tuple[Activity, ...]:
        read = (self._ladders[index].read(now_ns) for index, _ in self._devices)
        return tuple(one for one in read if one is not None)

    def _without_gpm(self, now_ns: int) -> list[AnyObservation]:
        """Why there is no GPM, once, and who else reads the counters; or that it is back."""
        reason = "; ".join(sorted({one.why for one in self._ladders.values()} - {""}))
        if reason == self._without_gpm_because:
            return []
        self._without_gpm_because = reason
        instead = max((one.instead for one in self._ladders.values()), default="")
        engine = host_engine() if reason else None
        fix = f"{engine[0]} (pid {engine[1]}) may hold the counters" if engine else ""
        return [Missing(t_ns=now_ns, source="gpm", reason=reason, fix=fix, instead=instead)]

    def _used_devices(self) -> list[tuple[int, Any]]:
        """Devices that hold a context of the target.

        In a container NVML names processes by pids that nobody in there knows: then those that it
        can see, once it has opened the driver. A process that never did uses no GPU.
        """
        if not has_opened_driver(self._pid):
            return []
        nvml = self._nvml
        every = devices_of(nvml)
        held = [one for one in every.items() if self._memory(self._running(one[1])) is not None]
        if held:
            return held
        chosen = visible(self._visible, uuids_of(nvml, every))
        return [(index, every[index]) for index in chosen if index in every]

    def _running(self, device: Any) -> Sequence[Any]:
        """The processes with a context on a device, as NVML names them."""
        return answer(self._nvml, self._nvml.nvmlDeviceGetComputeRunningProcesses, device) or ()

    def _memory(self, running: Sequence[Any]) -> int | None:
        """Bytes that the target holds on a device; None when it holds no context there."""
        held = [entry.usedGpuMemory for entry in running if entry.pid in self._pids]
        return sum(used or 0 for used in held) if held else None

    def _use(self, index: int, device: Any) -> GpuUse | None:
        """None of one that does not answer any more, or reports nothing of its memory."""
        nvml, nameplate, running = self._nvml, self._nameplates[index], self._running(device)
        utilization = answer(self._nvml, nvml.nvmlDeviceGetUtilizationRates, device)
        memory = answer(self._nvml, nvml.nvmlDeviceGetMemoryInfo, device)
        if memory is None:
            return None
        power_mw = answer(self._nvml, nvml.nvmlDeviceGetPowerUsage, device)
        energy_mj = answer(self._nvml, nvml.nvmlDeviceGetTotalEnergyConsumption, device)
        limit_mw = answer(self._nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, device)
        throttles = answer(self._nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, device) or 0
        return GpuUse(
            uuid=nameplate.uuid,
            index=index,
            name=nameplate.name,
            utilization_percent=None if utilization is None else float(utilization.gpu),
            memory_used_bytes=memory.used,
            memory_total_bytes=memory.total,
            target_memory_bytes=self._memory(running),
            power_w=None if power_mw is None else power_mw / 1000,
            sm_clock_mhz=answer(
                self._nvml, nvml.nvmlDeviceGetClockInfo, device, nvml.NVML_CLOCK_SM
            ),
            temperature_c=answer(
                self._nvml, nvml.nvmlDeviceGetTemperature, device, nvml.NVML_TEMPERATURE_GPU
            ),
            throttle_reasons=tuple(
                sorted(
                    {reason for bit, reason in THROTTLES.items() if throttles & getattr(nvml, bit)}
                )
            ),
            memory_clock_mhz=answer(
                self._nvml, nvml.nvmlDeviceGetClockInfo, device, nvml.NVML_CLOCK_MEM
            ),
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            others=others_on(nvml, device, running, self._pids),
            max_sm_clock_mhz=nameplate.max_sm_clock_mhz,
            pcie_generation=nameplate.pcie_generation,
            pcie_width=nameplate.pcie_width,
            energy_j=None if energy_mj is None else energy_mj / 1000,
        )
