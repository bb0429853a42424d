"""What a GPU does and how it is, in words. What was not measured has none."""

from collections.abc import Iterable

from probe.wire.messages import GpuMemory
from tui.observations import Activity, GpuUse
from tui.over_time.series import Series
from tui.snapshot import GpuPhases, Snapshot
from tui.wording.numbers import count, milliseconds, size

LEAST_LINK_MB_S = 1.0
"""NVLink is worth a word where something goes over it."""
HARMLESS = frozenset({"power cap"})
"""Large GPUs run at their cap: it is no fault of theirs."""
MEASURED = {
    "sm": "SM",
    "busy": "busy",
    "occupancy": "occupancy",
    "tensor": "tensor",
    "fp32": "FP32",
    "dram": "DRAM",
    "pcie_rx": "PCIe",
    "nvlink_rx": "NVLink",
    "power": "power",
    "sm_clock": "clocks",
    "temperature": "temperature",
    "memory_used": "memory",
}
"""Short names of the series, one for both directions."""


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
    return [*words, *_others_words(gpu)]


def holder_words(gpu: GpuUse) -> list[str]:
    """Who is on it: "this process 68.1 GiB", "python (pid 991) 12.0 GiB, 3% of its time"."""
    if gpu.target_memory_bytes is None:
        return ["NVML names no process of this container, so nobody can be told apart"]
    alone = "" if gpu.others else ", and no other"
    return [f"this process {size(gpu.target_memory_bytes)}{alone}", *_others_words(gpu)]


def held_by(gpu: GpuUse) -> tuple[str, ...]:
    """What slows its clocks down more than is meant."""
    return tuple(reason for reason in gpu.throttle_reasons if reason not in HARMLESS)


def clocks_words(gpu: GpuUse) -> str:
    """ "held down: too hot · 1,410 of 1,980 MHz"."""
    if gpu.sm_clock_mhz is None:
        return "not told"
    top = "" if gpu.max_sm_clock_mhz is None else f" of {count(gpu.max_sm_clock_mhz)}"
    at = f"{count(gpu.sm_clock_mhz)}{top} MHz"
    if held := held_by(gpu):
        return f"held down: {', '.join(held)} · {at}"
    if gpu.throttle_reasons:
        return f"at its power cap, as large GPUs run · {at}"
    return f"nothing holds them down · {at}"


def counters_words(read: Iterable[Series], width: int) -> str:
    """What is measured by whom: "[gpm 100 ms] SM, tensor, DRAM · [nvml 1 s] power", or where that
    is too long "[gpm 100 ms] SM … DRAM"."""
    by_source: dict[str, list[str]] = {}
    for series in read:
        if series.name in MEASURED:
            by_source.setdefault(sources_words([series]), []).append(MEASURED[series.name])
    full = " · ".join(f"[{source}] {', '.join(names)}" for source, names in by_source.items())
    if len(full) <= width:
        return full
    ends = {source: dict.fromkeys((names[0], names[-1])) for source, names in by_source.items()}
    return " · ".join(f"[{source}] {' … '.join(names)}" for source, names in ends.items())


def no_counters_words(missing: Iterable[str]) -> str:
    """Why there are no counters of what is at work: "needs Hopper or newer"; "" where none of the
    lines of what is missing says so."""
    for line in missing:
        source, _, reason = line.partition(": ")
        if source == "gpm":
            return reason.partition(";")[0]
    return ""


def _others_words(gpu: GpuUse) -> list[str]:
    words: list[str] = []
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


def felt_share(snapshot: Snapshot) -> float | None:
    """Part of the step that is a wait for data which the GPU felt, 0 to 1, of the same steps as the
    host's bar; None where its clock is not read, or nothing was waited."""
    on_gpu = snapshot.gpu_phases
    if on_gpu is None or snapshot.steps is None or on_gpu.exposed_ms + on_gpu.hidden_ms <= 0:
        return None
    waited = sum(phase.share for phase in snapshot.steps.phases if phase.name == "data")
    return waited * on_gpu.exposed_ms / (on_gpu.exposed_ms + on_gpu.hidden_ms)


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


def sources_words(read: Iterable[Series]) -> str:
    """Who measured, and how far apart: "gpm 100 ms · nvml 200 ms, 1 s"."""
    intervals: dict[str, dict[str, None]] = {}
    for series in read:
        ms = round(series.interval_ns / 1e6)
        every = f"{ms} ms" if ms < 1000 else f"{ms / 1000:g} s"
        intervals.setdefault(series.source, {}).setdefault(every)
    return " · ".join(f"{source} {', '.join(every)}" for source, every in intervals.items())
