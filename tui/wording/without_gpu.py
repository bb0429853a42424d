"""A machine without a GPU in words: why there is none, and what is known instead."""

from tui.snapshot import MemoryView, Snapshot
from tui.verdict.figures import cores
from tui.wording.numbers import size


def no_gpu_words(snapshot: Snapshot) -> str:
    """Why no GPU is shown."""
    for line in snapshot.status.missing:
        source, _, reason = line.partition(": ")
        if source == "nvml":
            return f"none: {reason}"
    if snapshot.status.state == "connecting":
        return "not looked at yet"
    return "none: the process has opened no CUDA context"


def cores_words(snapshot: Snapshot) -> str:
    """ "the process 46% of a core · 4 workers 396% · 16 cores may be used, 54% busy"."""
    words: list[str] = []
    for role in ("main", "worker"):
        shares = [
            one.cpu_percent
            for one in snapshot.processes
            if one.role == role and one.cpu_percent is not None
        ]
        if shares:
            many = len(shares)
            who = "the process" if role == "main" else f"{many} worker{'s' if many > 1 else ''}"
            words.append(f"{who} {sum(shares):.0f}% of a core")
    if snapshot.cores is not None:
        around = snapshot.surroundings
        busy = around.busy_percent if around else None
        told = "" if busy is None else f", {busy:.0f}% busy"
        words.append(f"{cores(snapshot.cores)}{told}")
    return " · ".join(words) or "not measured yet"


def host_memory_words(memory: MemoryView) -> str:
    """ "the process 4.6 GiB · workers 2.2 GiB · 417 GiB of 503 GiB free"."""
    words: list[str] = []
    if memory.held_bytes is not None:
        words.append(f"the process {size(memory.held_bytes)}")
    if memory.workers_bytes:
        words.append(f"workers {size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes is not None:
        words.append(f"{size(memory.available_bytes)} of {size(memory.total_bytes)} free")
    return " · ".join(words) or "not measured yet"
