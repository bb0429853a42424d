"""What every face shows: one immutable picture of the session at one moment."""

from dataclasses import dataclass

from probe.wire.messages import GpuMemory, Hello, Loader, Step
from tui.observations import Activity, GpuUse, ProcessUse
from tui.verdict.findings import Verdict
from tui.verdict.said import NOTHING_SAID, Held, Timeline
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
    """"SM active %", "GPU busy %" or, without one, "process computes %"."""
    source: str
    """"gpm 100 ms", "nvml 200 ms", "hook, 20 ms"."""
    note: str
    """Said once below the picture where it is not the GPU's: why, else ""."""
    interval_ns: int
    samples: tuple[Sample, ...]
    """Values 0 to 100, oldest first; each holds for `interval_ns` before its time."""
    step_starts_ns: tuple[int, ...]
    tensor: tuple[Sample, ...] = ()
    """Tensor-core activity at the same moments; empty where it is not measured."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One step as an oscilloscope shows it: samples of many steps folded on the step starts."""

    step_ns: int
    """Length that the profile is drawn for: the median step."""
    steps: int
    """Steps folded."""
    source: str
    """"gpm 100 ms"."""
    mean: tuple[float | None, ...]
    """SM activity by equal parts of the step, 0 to 100; None where no sample fell."""
    low: tuple[float | None, ...]
    """The same by each quarter of the samples alone: the lowest, and the highest."""
    high: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class GpuPhases:
    """The window's steps on the GPU's own clock."""

    steps: int
    phases: tuple[Phase, ...]
    """Shares of the GPU's wall time."""
    exposed_ms: float
    """A step's wait for data that the GPU felt, and the part that it did not."""
    hidden_ms: float
    lag_ms: tuple[float | None, float | None, float | None, float | None]
    """Median lag at the fetch's end, the forward's, the backward's, the optimizer's."""
    uncertain_ms: float | None
    every: int
    """One step in so many is measured."""
    cost_us: float | None
    """Measured cost of the device marks of one such step."""


@dataclass(frozen=True, slots=True)
class MemoryView:
    """Host memory (and the GPUs' where there are any)."""

    host: tuple[MemoryPoint, ...]
    """The training process's without pages of files, which are let go when memory is short."""
    host_rss_bytes: int | None
    workers_bytes: int | None
    """Proportional set size without pages of files where it is known, else resident."""
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
    replay: str | None = None
    """What is replayed ("recorded on an NVIDIA H200, 2026-11-21"); None while live."""
    recording: str | None = None
    """The file that is being written; None while none is."""


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
    activity: tuple[Activity, ...] = ()
    """Of each GPU the mean over the last second."""
    scope: Scope | None = None
    gpu_phases: GpuPhases | None = None
    gpu_memory: tuple[GpuMemory, ...] = ()
    """The allocator over time, oldest first."""
    timeline: Timeline = NOTHING_SAID
    """The verdicts of the run so far."""
    summary: tuple[Held, ...] = ()
    """The same by the time that each held, the longest first."""
