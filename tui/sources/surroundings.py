"""The facts that the doctor judges: read when somebody asks, in some hundredths of a second."""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any, Final

import psutil

from ..discovery.state_page import PROC, is_root, ptrace_scope
from ..model.machine_facts import (
    CoresFact,
    DriverFact,
    GpuFact,
    MachineFacts,
    MemoryFact,
    PtraceFact,
    TargetFact,
    TerminalFact,
)
from ..terminal import charset_name, colour_count, takes_clipboard, why_no_screen
from .gpm import GpmReader
from .nvml import NO_DRIVER, host_engine
from .stacks import find_py_spy
from .system import MemoryLimit, cores_of, memory_of, quota_use_of

PACKAGES: Final = {
    "gpuwatch": "gpuwatch-torch",
    "textual": "textual",
    "pyzmq": "pyzmq",
    "py-spy": "py-spy",
    "nvidia-ml-py": "nvidia-ml-py",
    "torch": "torch",
}
CAP_SYS_PTRACE: Final = 1 << 19


def facts_of(pid: int, target: TargetFact | None = None) -> MachineFacts:
    """What is to be known around a process (this one's own pid where none is watched)."""
    return MachineFacts(
        driver=_driver(),
        engine=host_engine(),
        py_spy=find_py_spy() or "",
        ptrace=ptrace_fact(),
        cores=_cores(pid),
        memory=_memory(pid),
        terminal=_terminal(),
        versions=(("python", python_version()), *((name, _of(d)) for name, d in PACKAGES.items())),
        target=target,
    )


def ptrace_fact(proc: Path = PROC) -> PtraceFact:
    """What the kernel says of looking into processes."""
    try:
        status = (proc / "self/status").read_text(errors="replace")
    except OSError:
        status = ""
    effective = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    capable = bool(effective) and bool(int(effective[0], 16) & CAP_SYS_PTRACE)
    contained = _in_container(proc) or (is_root() and not capable)
    return PtraceFact(ptrace_scope(proc), capable, contained)


def _in_container(proc: Path) -> bool:
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return True
    try:
        return "kubepods" in (proc / "1/cgroup").read_text(errors="replace")
    except OSError:
        return False


def _driver() -> DriverFact:
    import pynvml as nvml

    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        missing = isinstance(error, nvml.NVMLError_LibraryNotFound)
        return DriverFact(fault=NO_DRIVER if missing else str(error))
    try:
        devices = [nvml.nvmlDeviceGetHandleByIndex(at) for at in range(nvml.nvmlDeviceGetCount())]
        gpus = tuple(_gpu(nvml, device) for device in devices)
        return DriverFact(_text(nvml.nvmlSystemGetDriverVersion()), gpus)
    except nvml.NVMLError as error:
        return DriverFact(fault=f"NVML: {error}")
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: Any, device: Any) -> GpuFact:
    return GpuFact(_text(nvml.nvmlDeviceGetName(device)), GpmReader.supported(nvml, device))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _cores(pid: int) -> CoresFact:
    quota = quota_use_of(pid)
    return CoresFact(
        allowed=cores_of(pid),
        machine=psutil.cpu_count() or 1,
        quota_periods=None if quota is None else quota.periods,
        quota_cut=0 if quota is None else quota.cut_periods,
    )


def _memory(pid: int) -> MemoryFact:
    machine = psutil.virtual_memory()
    limit = memory_of(pid, MemoryLimit(machine.total, machine.available))
    return MemoryFact(limit.total_bytes, limit.available_bytes, machine.total)


def _terminal() -> TerminalFact:
    return TerminalFact(
        term=os.environ.get("TERM", ""),
        colours=colour_count(),
        charset=charset_name(),
        clipboard=takes_clipboard(),
        screen=why_no_screen() or "",
        tmux="TMUX" in os.environ,
    )


def _of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
