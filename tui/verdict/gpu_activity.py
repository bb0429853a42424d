"""What a GPU did over a window, and who else is on it."""

from dataclasses import dataclass
from typing import Final

from .thresholds.causes import LAUNCHING_OF_BUSY

WHOLE_PERCENT: Final = 1.0
"""NVML's own utilisation comes in these: what may be missing of it."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another process on the GPU."""

    pid: int
    name: str
    """"" where it lives in another pid namespace."""
    memory_bytes: int | None
    sm_percent: float | None
    """Its share of the device's time by NVML; None where that is unknown."""


@dataclass(frozen=True, slots=True)
class GpuActivity:
    """Means of the counters over the window, percent or MB/s; None: not read."""

    source: str
    """"gpm", "samples" or "utilization"."""
    seconds: float
    """How much of the window they cover."""
    busy: float | None
    sm: float | None
    occupancy: float | None
    tensor: float | None
    fp32: float | None
    dram: float | None
    pcie_rx_mb_s: float | None
    pcie_tx_mb_s: float | None
    throttled: float
    """Part of the readings with a reason to throttle, 0 to 1."""
    others: int
    """Other processes on the device."""
    others_sm: float | None = None
    """What they use of the device's time together, percent, where NVML reports it."""
    throttle_reasons: tuple[str, ...] = ()
    """The reasons that were read, the most frequent first."""
    clock_lost: float | None = None
    """Part of its speed that the device lacked in the readings with such a reason, by its clock
    against the highest it goes to: a mean over all readings, 0 to 1."""
    neighbours: tuple[Neighbour, ...] = ()
    """Those processes, the one that uses most of the device first."""
    pcie_rx_peak_mb_s: float | None = None
    """The highest of the readings."""
    nvlink_rx_mb_s: float | None = None
    """Over all links, towards the device."""
    nvlink_tx_mb_s: float | None = None
    devices: int = 1
    """Of so many these are the means."""
    link_mb_s: float | None = None
    """What the link to the host carries one way, by its generation and width."""

    @property
    def most_launching(self) -> float | None:
        """The part of the time, 0 to 1 and more, that the host can need at the most to launch what
        all devices of the process were seen to run; None where that was not read."""
        if self.busy is None:
            return None
        unseen = 0.0 if self.source == "gpm" else WHOLE_PERCENT
        return LAUNCHING_OF_BUSY * (self.busy * self.devices + unseen) / 100
