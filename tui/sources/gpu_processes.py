"""Who else is on a GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tui.observations import OtherProcess
from tui.sources.nvml_answer import answer

RECENT_US: Final = 5_000_000
"""Of the samples of each process's use that NVML keeps."""


def others_on(
    nvml: Any, device: Any, running: Sequence[Any], own: set[int]
) -> tuple[OtherProcess, ...]:
    """Of the processes with a context on the device those that are not the target's, the largest
    first.

    `own` are the target's pids in all the namespaces that it lives in. Where NVML names the target
    by none of them (in a container it may not), nobody can be told from it, and all is left out.
    """
    strange = [entry for entry in running if entry.pid not in own]
    if not strange or len(strange) == len(running):
        return ()
    used = _shares(nvml, device)
    others = [
        OtherProcess(
            pid=entry.pid,
            name=_name_of(entry.pid),
            memory_bytes=entry.usedGpuMemory,
            # NVML tells of those alone that did anything.
            sm_percent=used.get(entry.pid, 0.0) if used else None,
        )
        for entry in strange
    ]
    return tuple(sorted(others, key=lambda other: -(other.memory_bytes or 0)))


def _shares(nvml: Any, device: Any) -> dict[int, float]:
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
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
