"""What the kernel shows of a process: which GPUs it may use, whether it is a worker, has torch."""

import os
from pathlib import Path
from typing import Final

import psutil


def visible(variable: str | None, uuids: list[str]) -> list[int]:
    """Positions of the devices that CUDA_VISIBLE_DEVICES names, in NVML's order (by PCI bus).

    Numbers are taken as positions in that order, which is CUDA's own only with
    CUDA_DEVICE_ORDER=PCI_BUS_ID or on a machine of equal GPUs; UUIDs (and their prefixes, as CUDA
    allows) are exact. Like CUDA, the first entry that names nothing ends the list.
    """
    if variable is None:
        return list(range(len(uuids)))
    chosen: list[int] = []
    for entry in (part.strip() for part in variable.split(",")):
        if entry.isdecimal() and int(entry) < len(uuids):
            chosen.append(int(entry))
            continue
        named = [at for at, uuid in enumerate(uuids) if entry and uuid.startswith(entry)]
        if len(named) != 1:
            break
        chosen += named
    return chosen


def has_opened_driver(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process holds NVIDIA's memory driver open, as all with a CUDA context do."""
    try:
        return any("nvidia-uvm" in os.readlink(fd) for fd in (proc / str(pid) / "fd").iterdir())
    except OSError:
        return False


def environ_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty when it may not be read."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in raw.decode(errors="replace").split("\0"))
    return {name: value for name, _, value in pairs if name}


# Whether a process is a DataLoader's worker, and whether it has loaded torch.

WORKER_NAME: Final = "pt_data_worker"
"""What torch calls its DataLoader workers."""


def is_worker(child: psutil.Process, target: psutil.Process) -> bool:
    """Whether a child loads data: torch names its workers; older ones by how they were started.

    A forked worker has its parent's command line; a spawned one says `spawn_main`.
    """
    if child.name() == WORKER_NAME:
        return True
    line = child.cmdline()
    return child.ppid() == target.pid and (
        line == target.cmdline() or any("spawn_main" in part for part in line)
    )


def maps_torch(pid: int) -> bool:
    """Whether a process has torch's libraries mapped, as far as this user may know."""
    try:
        return "/libtorch" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def has_torch(maps: Path) -> bool:
    """Whether a process has torch's libraries mapped. True where this user may not know."""
    try:
        return "/libtorch" in maps.read_text()
    except OSError:
        return True
