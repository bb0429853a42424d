"""What a GPU does and how it is, in words. What was not measured has none."""

from probe.wire.messages import GpuMemory
from tui.observations import Activity, GpuUse
from tui.snapshot import GpuPhases
from tui.wording.numbers import count, milliseconds, size

LEAST_LINK_MB_S = 1.0
"""NVLink is worth a word where something goes over it."""


def does_words(activity: Activity) -> list[str]:
    """ "SM 34%", "tensor 20%", "fp32 2%", "DRAM 17%", "PCIe in 5.9 GB/s"…"""
    words = (
        [f"busy {activity.busy:.0f}%"] if activity.sm is None and activity.busy is not None else []
    )
    parts = {
        "SM": activity.sm,
        "tensor": activity.tensor,
        "fp32": activity.fp32,
        "DRAM": activity.dram,
    }
    words += [f"{name} {value:.0f}%" for name, value in parts.items() if value is not None]
    moved = {"PCIe in": activity.pcie_rx_mb_s, "out": activity.pcie_tx_mb_s}
    words += [f"{name} {rate(value)}" for name, value in moved.items() if value is not None]
    linked = (activity.nvlink_rx_mb_s or 0.0) + (activity.nvlink_tx_mb_s or 0.0)
    return [*words, f"NVLink {rate(linked)}"] if linked >= LEAST_LINK_MB_S else words


def state_words(gpu: GpuUse) -> list[str]:
    """ "310 of 700 W", "1,980 MHz", "41 °C"."""
    words: list[str] = []
    if gpu.power_w is not None:
        limit = "" if gpu.power_limit_w is None else f" of {gpu.power_limit_w:.0f}"
        words.append(f"{gpu.power_w:.0f}{limit} W")
    if gpu.sm_clock_mhz is not None:
        words.append(f"{count(gpu.sm_clock_mhz)} MHz")
    if gpu.temperature_c is not None:
        words.append(f"{gpu.temperature_c} °C")
    return words


def memory_words(gpu: GpuUse) -> list[str]:
    """ "68.9 GiB of 140 GiB", "this process 68.1 GiB", "python (pid 991) 12.0 GiB"."""
    words = [f"{size(gpu.memory_used_bytes)} of {size(gpu.memory_total_bytes)}"]
    if gpu.target_memory_bytes is not None:
        words.append(f"this process {size(gpu.target_memory_bytes)}")
    for other in gpu.others:
        held = "" if other.memory_bytes is None else f" {size(other.memory_bytes)}"
        used = "" if other.sm_percent is None else f", {other.sm_percent:.0f}% of its time"
        words.append(f"{other.name or 'another'} (pid {other.pid}){held}{used}")
    return words


def clock_words(phases: GpuPhases) -> list[str]:
    """ "exposed wait 31 ms", "hidden 4.9 ms", "lag 71 ms", "1 step in 5"."""
    words = [f"exposed wait {milliseconds(phases.exposed_ms)}"]
    words.append(f"hidden {milliseconds(phases.hidden_ms)}")
    lags = [lag for lag in phases.lag_ms if lag is not None]
    if lags:
        words.append(f"lag {milliseconds(max(0.0, lags[-1]))}")
    return [*words, f"1 step in {phases.every}"] if phases.every > 1 else words


def allocator_words(memory: GpuMemory) -> list[str]:
    """ "allocated 2.1 GiB", "reserved 2.6 GiB", "peak 2.4 GiB", "3 retries"."""
    words = [f"allocated {size(memory.allocated)}", f"reserved {size(memory.reserved)}"]
    words.append(f"peak {size(memory.peak_allocated)}")
    if memory.retries:
        words.append(f"{memory.retries} retr{'y' if memory.retries == 1 else 'ies'}")
    if memory.ooms:
        words.append(f"{memory.ooms} out of memory")
    return words


def rate(mb_s: float) -> str:
    """Decimal megabytes a second: 5900.0 -> "5.9 GB/s", 70.2 -> "70 MB/s"."""
    return f"{mb_s / 1000:.1f} GB/s" if mb_s >= 999.5 else f"{mb_s:.0f} MB/s"
