"""What memory held over the last hour, as the charts draw it: as it was, not its floors alone."""

from typing import Final

from probe.wire.messages import GpuMemory
from tui.observations import GpusSeen
from tui.over_time.growing import Growing
from tui.over_time.series import Series

READ_NS: Final = 1_000_000_000
"""The allocator and the process are read once a second…"""
SHARED_NS: Final = 10_000_000_000
"""…what workers share with each other every ten."""
LONGEST_NS: Final = 60_000_000_000
"""The allocator is read between steps: a reading after a long one speaks of it. After a longer
pause nothing is known of it."""
HELD: Final = 3_600


class MemoryLevels:
    """One series for each memory; one of which nothing was told is not there."""

    def __init__(self) -> None:
        self._allocators: dict[int, tuple[Growing, Growing]] = {}
        """Allocated and reserved, by torch's number of the device."""
        self._read_ns: dict[int, int] = {}
        """When each was read last."""
        self._others: dict[int, Growing] = {}
        """By NVML's."""
        self._process: Growing | None = None
        self._workers: Growing | None = None

    def allocator(self, reading: GpuMemory) -> None:
        """A device's allocator was read."""
        device = reading.device
        if device not in self._allocators:
            self._allocators[device] = (
                _growing("allocated", "GPU allocated", "hook", device, READ_NS),
                _growing("reserved", "GPU reserved", "hook", device, READ_NS),
            )
        held = (reading.allocated, reading.reserved)
        since_ns = reading.t_ns - self._read_ns.get(device, reading.t_ns - READ_NS)
        if since_ns <= 0:
            return  # told again after a reconnection
        self._read_ns[device] = reading.t_ns
        for growing, value in zip(self._allocators[device], held, strict=True):
            growing.interval_ns = max(READ_NS, round(since_ns / READ_NS) * READ_NS)
            growing.add(reading.t_ns, float(value), min(since_ns, LONGEST_NS))

    def gpus(self, seen: GpusSeen) -> None:
        """The devices were read: what others hold on each, once somebody did."""
        for gpu in seen.gpus:
            held = sum(other.memory_bytes or 0 for other in gpu.others)
            if held and gpu.index not in self._others:
                self._others[gpu.index] = _growing(
                    "others", "other processes", "nvml", gpu.index, READ_NS
                )
            if gpu.index in self._others:
                self._others[gpu.index].add(seen.t_ns, float(held))

    def process(self, t_ns: int, held_bytes: int) -> None:
        """The training process was looked at."""
        if self._process is None:
            self._process = _growing("host", "process", "proc", None, READ_NS)
        self._process.add(t_ns, float(held_bytes))

    def workers(self, t_ns: int, held_bytes: int) -> None:
        """The workers' proportional sizes were read anew."""
        if self._workers is None:
            self._workers = _growing("workers", "workers, PSS", "proc", None, SHARED_NS)
        self._workers.add(t_ns, float(held_bytes))

    def series(self) -> tuple[Series, ...]:
        """What is held now."""
        pairs = self._allocators.values()
        known = [growing for pair in pairs for growing in pair] + [*self._others.values()]
        known += [one for one in (self._process, self._workers) if one is not None]
        return tuple(one.series() for one in known)


def _growing(name: str, title: str, source: str, device: int | None, read_ns: int) -> Growing:
    return Growing(name, title, "bytes", source, device, read_ns, as_sampled=HELD)
