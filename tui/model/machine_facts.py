"""What the doctor is told of the surroundings: read once, at the edge (sources/surroundings.py)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuFact:
    """One device that NVML names."""

    name: str
    gpm: bool
    """It has the counters that are read every 100 ms."""


@dataclass(frozen=True, slots=True)
class DriverFact:
    """NVML, or why it cannot be used."""

    version: str = ""
    gpus: tuple[GpuFact, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PtraceFact:
    """Whether this user may look into processes."""

    scope: int | None
    """Yama's ptrace_scope; None where the kernel has no Yama."""
    capable: bool
    """CAP_SYS_PTRACE: scope 1 does not bind."""
    in_container: bool
    """One that can be told for one, or that keeps the right from root."""


@dataclass(frozen=True, slots=True)
class CoresFact:
    """Cores that the process may use (this one, where no process is given)."""

    allowed: float
    """By affinity and quota, the smaller."""
    machine: int
    quota_periods: int | None = None
    """Periods of the CPU quota so far; None without a quota."""
    quota_cut: int = 0
    """Those in which it held the group back."""


@dataclass(frozen=True, slots=True)
class MemoryFact:
    """Bytes that the process can have: the machine's, or its cgroup's limit."""

    total: int
    available: int
    machine: int


@dataclass(frozen=True, slots=True)
class TerminalFact:
    """What the terminal can show."""

    term: str
    colours: str
    """"many", "16", "none"."""
    charset: str
    """"unicode", "console", "ascii"."""
    clipboard: bool
    screen: str
    """Why there can be no screen; "" where there can."""
    tmux: bool


@dataclass(frozen=True, slots=True)
class TargetFact:
    """The process that was asked about."""

    pid: int
    script: str
    probe: str
    """Version of its probe; "" without one."""
    schema: int | None
    """Of the wire, by the probe; None without one."""
    fault: str
    """Why it cannot be watched, else ""."""
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
    socket: str
    """Why the directory of the sockets cannot be trusted or entered; "" where it can."""
    cores: CoresFact
    memory: MemoryFact
    terminal: TerminalFact
    versions: tuple[tuple[str, str], ...]
    """(package, version or "not installed"), gpuwatch first."""
    target: TargetFact | None = None
    """None: no process was given."""
