"""GPUs, their ranks, and machines without one, in words. What was not measured is left out."""

from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Final

from ..model.observations import Activity, GpuUse
from ..model.snapshot import GpuPhases, MemoryView, Rank, Snapshot
from ..steps import GpuMemory
from ..timeseries.series import Series
from ..verdict.findings import MissingSignal, find_missing
from ..verdict.format import cores
from ..verdict.job.late import LateRank
from ..verdict.job.lateness import rhythm_words, since_words
from .numbers import count, duration, milliseconds, percent, size

LEAST_LINK_MB_S = 1.0
"""Below it NVLink is idle and not named."""
HARMLESS = frozenset({"power cap"})
"""Large GPUs normally run at their power cap."""
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
    """ "69 GiB of 140 GiB", "this process 68 GiB", "python (pid 991) 12 GiB"."""
    words = [f"{size(gpu.memory_used_bytes)} of {size(gpu.memory_total_bytes)}"]
    if gpu.target_memory_bytes is not None:
        words.append(f"this process {size(gpu.target_memory_bytes)}")
    return [*words, *_others_words(gpu)]


def holder_words(gpu: GpuUse) -> list[str]:
    """Who is on it: "this process 68 GiB", "python (pid 991) 12 GiB, uses 3% of the GPU"."""
    if gpu.target_memory_bytes is None:
        return ["not split by process: NVML cannot see the processes of this container"]
    alone = "" if gpu.others else ", no other"
    return [f"this process {size(gpu.target_memory_bytes)}{alone}", *_others_words(gpu)]


def held_by(gpu: GpuUse) -> tuple[str, ...]:
    """What lowers its clocks, but for harmless reasons."""
    return tuple(reason for reason in gpu.throttle_reasons if reason not in HARMLESS)


def clocks_words(gpu: GpuUse) -> str:
    """ "limited: too hot · 1,410 of 1,980 MHz"."""
    if gpu.sm_clock_mhz is None:
        return "not reported"
    top = "" if gpu.max_sm_clock_mhz is None else f" of {count(gpu.max_sm_clock_mhz)}"
    at = f"{count(gpu.sm_clock_mhz)}{top} MHz"
    if held := held_by(gpu):
        return f"limited: {', '.join(held)} · {at}"
    if gpu.throttle_reasons:
        return f"at the power cap, normal for a large GPU · {at}"
    return f"not limited · {at}"


def counters_words(read: Iterable[Series], width: int) -> str:
    """Which source measures what: "[gpm 100 ms] SM, tensor, DRAM · [nvml 1 s] power", shortened to
    "[gpm 100 ms] SM … DRAM" where that is too wide."""
    by_source: dict[str, list[str]] = {}
    for series in read:
        if series.name in MEASURED:
            by_source.setdefault(sources_words([series]), []).append(MEASURED[series.name])
    full = " · ".join(f"[{source}] {', '.join(names)}" for source, names in by_source.items())
    if len(full) <= width:
        return full
    ends = {source: dict.fromkeys((names[0], names[-1])) for source, names in by_source.items()}
    return " · ".join(f"[{source}] {' … '.join(names)}" for source, names in ends.items())


def no_counters_words(missing: Iterable[MissingSignal]) -> str:
    """Why there are no counters of what is at work: "needs Hopper or newer"; "" where there are."""
    gpm = find_missing(missing, "gpm")
    return gpm.why if gpm else ""


def _others_words(gpu: GpuUse) -> list[str]:
    words: list[str] = []
    for other in gpu.others:
        held = "" if other.memory_bytes is None else f" {size(other.memory_bytes)}"
        used = "" if other.sm_percent is None else f", uses {other.sm_percent:.0f}% of the GPU"
        words.append(f"{other.name or 'another process'} (pid {other.pid}){held}{used}")
    return words


def clock_words(phases: GpuPhases) -> list[str]:
    """ "exposed wait 31 ms", "hidden 4.9 ms", "lag 71 ms", "1 step in 5 measured"."""
    words = [f"exposed wait {milliseconds(phases.exposed_ms)}"]
    words.append(f"hidden {milliseconds(phases.hidden_ms)}")
    lags = [lag for lag in phases.lag_ms if lag is not None]
    if lags:
        words.append(f"lag {milliseconds(max(0.0, lags[-1]))}")
    return [*words, f"1 step in {phases.every} measured"] if phases.every > 1 else words


def exposed_share(snapshot: Snapshot) -> float | None:
    """Part of the step, 0 to 1, in which the GPU was idle for want of data, over the same steps as
    the host's bar; None where its clock is not read, or nothing was waited for."""
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
    """Decimal megabytes per second: 5900.0 -> "5.9 GB/s", 70.2 -> "70 MB/s"."""
    return f"{mb_s / 1000:.1f} GB/s" if mb_s >= 999.5 else f"{mb_s:.0f} MB/s"


def sources_words(read: Iterable[Series]) -> str:
    """Who measured, and at which interval: "gpm 100 ms · nvml 200 ms, 1 s"."""
    intervals: dict[str, dict[str, None]] = {}
    for series in read:
        ms = round(series.interval_ns / 1e6)
        every = f"{ms} ms" if ms < 1000 else f"{ms / 1000:g} s"
        intervals.setdefault(series.source, {}).setdefault(every)
    return " · ".join(f"{source} {', '.join(every)}" for source, every in intervals.items())


# The ranks of a job: which one is late, and by how much.

PHASE_NAMES: Final = {
    "data": "data wait",
    "other": "Python between the phases",
    "compute": "compute",
    "shared": "compute on a shared GPU",
    "launch": "issuing its work",
}


def count_words(ranks: tuple[Rank, ...], world_size: int) -> str:
    """ "8 ranks", "8 of 16 ranks"."""
    return (
        f"{len(ranks)} ranks" if len(ranks) >= world_size else f"{len(ranks)} of {world_size} ranks"
    )


def trouble_words(ranks: tuple[Rank, ...], now_ns: int) -> list[str]:
    """ "no link to node7 (8 ranks)", "r5 ended", "r2 silent 12 s": ranks with something wrong."""
    without = Counter(rank.host for rank in ranks if rank.state == "no link")
    troubles = [
        f"no link to {host or 'the first host'} ({counted} ranks)"
        for host, counted in without.items()
    ]
    for rank in ranks:
        if rank.state == "silent":
            troubles.append(f"r{rank.rank} silent {duration((now_ns - rank.last_seen_ns) / 1e9)}")
        elif rank.state not in ("live", "no link"):
            troubles.append(f"r{rank.rank} {rank.state}")
    return troubles


def late_words(late: LateRank) -> str:
    """ "r3 is late since step 1,240 (4 min ago): data wait 706 ms per step, others 12 ms"; "all
    ranks on node7 are late"."""
    where = f" on {late.rank.host}" if late.rank.host else ""
    who = f"r{late.rank.rank}{where} is late"
    if late.node is not None:
        who = f"all ranks on {late.node[0] or 'the first host'} are late"
    when = f"{rhythm_words(late.lateness)} {since_words(late.lateness)}".rstrip()
    if late.behind_ms is not None:
        return f"{who}{when}: its host is {milliseconds(late.behind_ms)} behind in each step"
    name = PHASE_NAMES.get(late.by, late.by)
    own, others = milliseconds(late.own_ms), milliseconds(late.others_ms)
    return f"{who}{when}: {name} {own} per step, others {others}"


def alike_words(ranks: tuple[Rank, ...]) -> str:
    """ "1.2 s per step · none late", for ranks of which none stands out."""
    steps = [rank.step_ms for rank in ranks if rank.step_ms is not None]
    if not steps:
        return "no steps yet"
    waits = [rank.data_share for rank in ranks if rank.data_share is not None]
    wait = f" · data wait {percent(median(waits))}" if waits else ""
    return f"{milliseconds(median(steps))} per step{wait} · none late"


# A machine without a GPU: why none is shown, and what is measured instead.


def no_gpu_words(snapshot: Snapshot) -> str:
    """Why no GPU is shown."""
    missing = find_missing(snapshot.status.missing, "nvml")
    if missing is not None:
        return f"none: {missing.reason}"
    if snapshot.status.state == "connecting":
        return "not checked yet"
    return "none: the process has opened no CUDA context"


def cores_words(snapshot: Snapshot) -> str:
    """ "process 46% of a core · 4 workers 396% of a core · 16 cores, 54% busy"."""
    words: list[str] = []
    for role in ("main", "worker"):
        shares = [
            one.cpu_percent
            for one in snapshot.processes
            if one.role == role and one.cpu_percent is not None
        ]
        if shares:
            many = len(shares)
            who = "process" if role == "main" else f"{many} worker{'s' if many > 1 else ''}"
            words.append(f"{who} {sum(shares):.0f}% of a core")
    if snapshot.cores is not None:
        around = snapshot.surroundings
        busy = around.busy_percent if around else None
        load = "" if busy is None else f", {busy:.0f}% busy"
        words.append(f"{cores(snapshot.cores)}{load}")
    return " · ".join(words) or "not measured yet"


def host_memory_words(memory: MemoryView) -> str:
    """ "process 4.6 GiB · workers 2.2 GiB · 417 GiB of 503 GiB free"."""
    words: list[str] = []
    if memory.held_bytes is not None:
        words.append(f"process {size(memory.held_bytes)}")
    if memory.workers_bytes:
        words.append(f"workers {size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes is not None:
        words.append(f"{size(memory.available_bytes)} of {size(memory.total_bytes)} free")
    return " · ".join(words) or "not measured yet"
