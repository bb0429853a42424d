"""What every face shows: one immutable picture of the session at one moment."""

from dataclasses import dataclass

from probe.wire.messages import Hello, Loader, Step
from tui.observations import GpuUse, ProcessUse
from tui.verdict.findings import Verdict
from tui.verdict.window import MemoryPoint, OpenStep, Stacks


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase over the window."""

    name: str
    """data, forward, backward, optimizer, other, evaluation, checkpoint, compile, loader start-up,
    or a user phase's own name."""
    mean_ms: float
    share: float
    """Of the wall time of the window's steps, 0 to 1. All shares add up to 1."""


@dataclass(frozen=True, slots=True)
class StepStats:
    """The window's steps in numbers."""

    total: int
    """Steps since the probe was armed."""
    in_window: int
    window_s: float
    p50_ms: float
    p95_ms: float
    max_ms: float
    steps_s: float
    samples_s: float | None
    inference: bool
    phases: tuple[Phase, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a series."""

    t_ns: int
    value: float


@dataclass(frozen=True, slots=True)
class Sawtooth:
    """Utilisation over time, at the grain it was sampled."""

    title: str
    """"GPU busy %" or, without one, "process computes %"."""
    source: str
    """"nvml 200 ms", "hook"."""
    note: str
    """Said once below the picture where it is not the GPU's: why, else ""."""
    interval_ns: int
    samples: tuple[Sample, ...]
    """Values 0 to 100, oldest first; each holds for `interval_ns` before its time."""
    step_starts_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemoryView:
    """Host memory (and the GPUs' where there are any)."""

    host: tuple[MemoryPoint, ...]
    host_rss_bytes: int | None
    workers_bytes: int | None
    """Proportional set size where it is known, else resident."""
    total_bytes: int | None
    available_bytes: int | None
    slope_bytes_per_100_steps: float | None
    """Trend of `host`; None while it is too short or not a trend."""
    growing: bool


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth a line: a checkpoint, an evaluation, a recompile, a verdict that changed."""

    t_ns: int
    step: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """How the monitor itself is doing."""

    mode: str
    """"hooks" or "no probe"."""
    state: str
    """"connecting", "live", "silent", "ended"."""
    ended: str | None
    """How the target ended, with the time."""
    freshness_s: float | None
    """Since the last message."""
    lost_messages: int
    lost_marks: int
    cost_share: float | None
    """Probe cost, part of the step (marks a step times the measured cost of one)."""
    monitor_cpu_percent: float | None
    missing: tuple[str, ...]
    """"source: reason. fix", one line each."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All of it."""

    t_ns: int
    t_unix: float
    attached_s: float
    hello: Hello | None
    script: str
    """Base name of the training script, for the header."""
    pid: int
    status: Status
    verdict: Verdict
    steps: StepStats | None
    recent: tuple[Step, ...]
    """The last steps, oldest first (at most 200)."""
    open_step: OpenStep | None
    loaders: tuple[Loader, ...]
    sawtooth: Sawtooth | None
    memory: MemoryView
    stacks: Stacks | None
    processes: tuple[ProcessUse, ...]
    cores: float | None
    gpus: tuple[GpuUse, ...]
    events: tuple[Event, ...]
    """Newest last, at most 50."""
