"""What a GPU does and how it is, in words. What was not measured has none."""

from tui.observations import Activity, GpuUse
from tui.wording.numbers import count, size

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


def rate(mb_s: float) -> str:
    """Decimal megabytes a second: 5900.0 -> "5.9 GB/s", 70.2 -> "70 MB/s"."""
    return f"{mb_s / 1000:.1f} GB/s" if mb_s >= 999.5 else f"{mb_s:.0f} MB/s"
