"""What the doctor checks of the machine; read by sources/surroundings.py."""

from dataclasses import dataclass

from ..terminal import CharsetName, ColourCount


@dataclass(frozen=True, slots=True)
class GpuFact:
    """One device, by NVML."""

    name: str
    gpm: bool
    """It has counters that can be read every 100 ms."""


@dataclass(frozen=True, slots=True)
class DriverFact:
    """NVML, or why it cannot be used."""

    version: str = ""
    gpus: tuple[GpuFact, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PtraceFact:
    """Whether this user may read the memory of other processes."""

    scope: int | None
    """Yama's ptrace_scope; None where the kernel has no Yama."""
    capable: bool
    """CAP_SYS_PTRACE: scope 1 does not bind."""
    in_container: bool
    """A container is recognised, or root lacks CAP_SYS_PTRACE."""


@dataclass(frozen=True, slots=True)
class CoresFact:
    """Cores that the process may use, or this one where none is given."""

    allowed: float
    """The smaller of affinity and quota."""
    machine: int
    quota_periods: int | None = None
    """Periods of the CPU quota so far; None without a quota."""
    quota_cut: int = 0
    """Those in which the quota throttled the group."""


@dataclass(frozen=True, slots=True)
class MemoryFact:
    """Bytes that the process can have: the machine's memory, or its cgroup's limit."""

    total: int
    available: int
    machine: int


@dataclass(frozen=True, slots=True)
class TerminalFact:
    """What the terminal can show."""

    term: str
    colours: ColourCount
    charset: CharsetName
    clipboard: bool
    screen: str
    """Why there can be no screen; "" where there can."""
    tmux: bool


@dataclass(frozen=True, slots=True)
class TargetFact:
    """The process given to the doctor."""

    pid: int
    script: str
    probe: str
    """Version of its probe; "" without one."""
    schema: int | None
    """Version of the probe's messages; None without a probe."""
    fault: str
    """Why it cannot be watched; "" where it can."""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """All of them."""

    driver: DriverFact
    engine: tuple[str, int] | None
    """A DCGM host engine: name and pid."""
    py_spy: str
    """Its path, or ""."""
    ptrace: PtraceFact
    cores: CoresFact
    memory: MemoryFact
    terminal: TerminalFact
    versions: tuple[tuple[str, str], ...]
    """(package, version or "not installed"), gpuwatch first."""
    target: TargetFact | None = None
    """None: no process was given."""
