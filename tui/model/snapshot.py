"""What every face shows: the run at one moment, immutable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from ..verdict.findings import Finding, MissingSignal, Verdict
from ..verdict.history import NO_HISTORY, Held, VerdictTimeline
from .link import LinkStatus

if TYPE_CHECKING:  # the first frame is drawn before what these hold is loaded
    from ..messages import Hello, Loader
    from ..steps import GpuMemory, GpuStep, Step, StepHistogram
    from ..timeseries.series import Series, StepEdges
    from ..verdict.idle_ledger import IdleLedger
    from ..verdict.job.facts import Job
    from ..verdict.job.late import LateRank
    from ..verdict.memory.trends import MemoryTrend
    from ..verdict.stack_samples import Sampled, Stacks
    from ..verdict.window import MemoryPoint, OpenStep
    from .noted import Numerics, Throughput
    from .observations import Activity, GpuUse, ProcessUse
    from .stack_trees import StackTrees


@dataclass(frozen=True, slots=True)
class Spread:
    """How a time differs from step to step. Of steps that the probe merged into one row only the
    mean is known, so they all count with it."""

    p50_ms: float
    p95_ms: float
    max_ms: float
    error_ms: float | None
    """Standard error of the mean: what chance alone moves it by. None of too few steps."""
    rare: Rare | None = None
    """Of what most steps have nothing of, how often it comes; None of all else, and where merged
    rows hide it."""


@dataclass(frozen=True, slots=True)
class Rare:
    """What comes now and then: a checkpoint, an evaluation."""

    events: int
    each_ms: float
    """Mean of the steps that have any."""
    every_steps: float | None
    """Steps from one to the next, on average; None while there are too few for a rhythm."""


@dataclass(frozen=True, slots=True)
class PhaseStats:
    """One phase over the window."""

    name: str
    """data, forward, backward, optimizer, other, evaluation, checkpoint, compile, loader start-up,
    or a user phase's own name."""
    mean_ms: float
    share: float
    """Of the wall time of the window's steps, 0 to 1. All shares add up to 1."""
    spread: Spread | None = None
    """On the host's clock, worked out once a second; None before, and on the GPU's clock."""


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
    phases: tuple[PhaseStats, ...]
    error_ms: float | None = None
    """Standard error of the mean of a step; None before it was worked out, and of too few."""
    merged: int = 1
    """Most steps that came merged into one row: only their mean is known."""
    whole: Spread | None = None
    """Of the same steps as the spreads of the phases, which no part can exceed; None before."""


@dataclass(frozen=True, slots=True)
class Sawtooth:
    """Utilisation over time, 0 to 100, at the grain it was sampled."""

    title: str
    """"SM active %", "GPU busy %" or, without one, "training %"."""
    source: str
    """"gpm 100 ms", "nvml 200 ms", "hook, 20 ms"."""
    note: str
    """Where it is not the GPU's: why, else ""."""
    series: Series
    """Of several GPUs the mean; each one's own is in `Snapshot.series`."""
    step_starts_ns: StepEdges
    """The step that runs now is the last."""
    tensor: Series | None = None
    """Tensor-core activity at the same moments; None where it is not measured."""


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
    phases: tuple[PhaseStats, ...]
    """Shares of the GPU's wall time."""
    exposed_ms: float
    """Wait for data per step: the part that the GPU waited too, and the part that it did not."""
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
    """Proportional set size without pages of files; of new workers the part of their resident size
    that it was before, until it is read. None until it was read of all of them once."""
    total_bytes: int | None
    available_bytes: int | None
    slope_bytes_per_100_steps: float | None
    """Trend of `host`; None while it is too short or not a trend."""
    growing: bool

    @property
    def held_bytes(self) -> int | None:
        """The newest of `host`."""
        return self.host[-1].bytes if self.host else None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The cores around the target and who started it, when they were last read."""

    busy_percent: float | None
    """Of the cores that the target may use, 0 to 100, over the second before."""
    others_percent: float | None
    """What processes outside its tree use of them, of one core."""
    throttled_percent: float | None
    """Part of the time in which its CPU quota held it back; None without a quota."""
    around: tuple[ProcessUse, ...]
    """Its launcher, and the other ranks of it."""


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of the target's job on this host, by its state page."""

    rank: int
    pid: int
    is_target: bool
    state: str
    """"live", "silent" (no word from the probe), "stopped" (and the kernel holds it), "unwatched"
    (it took itself out), "no link" to its host, "ended"."""
    steps: int
    """Completed since its probe was armed."""
    step_ms: float | None
    """Mean over the last ten seconds, or the last steps where they are longer; None before."""
    data_share: float | None
    """Parts of that, 0 to 1; what they leave is Python between the phases."""
    forward_share: float | None
    backward_share: float | None
    optimizer_share: float | None
    open_phase: str
    """What its training thread does."""
    open_since_ns: int | None
    """None before its first mark."""
    last_seen_ns: int
    """When its probe last wrote to the page."""
    device: int | None
    """NVML's index of its GPU."""
    memory_bytes: int | None
    """In use on that GPU, by whomever."""
    memory_total_bytes: int | None
    active: Series
    """How busy its GPU was; without one, the share of its steps that was no wait for data."""
    host: str = ""
    """Where it is; "" for the target's own host."""

    def open_s(self, now_ns: int) -> float | None:
        """How long its training thread has done that; None before its first mark."""
        return None if self.open_since_ns is None else max(0, now_ns - self.open_since_ns) / 1e9


@dataclass(frozen=True, slots=True)
class JobVerdict:
    """One verdict for all ranks: the same whichever of them is watched."""

    job: Job
    late: LateRank | None
    """The rank that the others wait for."""
    finding: Finding
    """The late rank's, where there is one; else the target's."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth a line: a checkpoint, an evaluation, a recompile, a verdict that changed."""

    t_ns: int
    step: int | None
    text: str
    kind: str = ""
    """checkpoint, evaluation, recompile, pace, workers, allocator, verdict, link, ended,
    recording, notify."""
    better: bool = False
    """Of a pace: steps take less time than before."""


Mode = Literal["hooks", "no probe"]
RunState = Literal["connecting", "live", "silent", "ended"]


@dataclass(frozen=True, slots=True)
class Status:
    """How the monitor itself is doing."""

    mode: Mode
    state: RunState
    ended: str | None
    """How the target ended and how long ago: "exited normally 12 s ago"."""
    freshness_s: float | None
    """Since the last message."""
    lost_messages: int
    lost_marks: int
    cost_share: float | None
    """Probe cost, part of the step (marks a step times the measured cost of one)."""
    monitor_cpu_percent: float | None
    missing: tuple[MissingSignal, ...]
    replay: str | None = None
    """What is replayed ("recorded on an NVIDIA H200, 2026-11-21"); None while live."""
    recording: str | None = None
    """The file that is being written; None while none is."""
    refused_requests: int = 0
    """That the probe did not know, of all monitors: another version, or somebody's nonsense."""
    unended_phases: int = 0
    """`probe.phase` entered and not left, beyond those that are kept open."""
    link: LinkStatus | None = None
    """Of a process on another machine; None of one here."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole run at one moment."""

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
    series: tuple[Series, ...] = ()
    """Of each GPU what it did (sm, busy, occupancy, tensor, fp32, dram, pcie_rx, pcie_tx,
    nvlink_rx, nvlink_tx) and how it was (power, sm_clock, memory_clock, temperature, memory_used),
    those that were ever read."""
    scope: Scope | None = None
    gpu_phases: GpuPhases | None = None
    recent_gpu: tuple[GpuStep, ...] = ()
    """The last steps that were measured on the GPU's clock, oldest first (at most 200)."""
    gpu_memory: tuple[GpuMemory, ...] = ()
    """The allocator over time, oldest first."""
    timeline: VerdictTimeline = NO_HISTORY
    summary: tuple[Held, ...] = ()
    """The same by the time that each held, the longest first."""
    ledger: IdleLedger | None = None
    """Where the GPU's time of the verdict's window went; None without the GPU's clock."""
    trends: tuple[MemoryTrend, ...] = ()
    surroundings: Surroundings | None = None
    """None until the processes were read."""
    ranks: tuple[Rank, ...] = ()
    """The ranks of the target's job on this host, by number; empty where it is alone."""
    world_size: int = 1
    job: JobVerdict | None = None
    """Of a job of several ranks, once its ranks were read."""
    sampled: Sampled | None = None
    """Without a probe: the samples of the main thread, instead of steps."""
    numerics: Numerics | None = None
    """None where the run says nothing of its numbers."""
    throughput: Throughput | None = None
    trees: StackTrees | None = None
    """The stacks of the last minute, merged, of all moments and by what the GPU did; None without a
    sample."""
    histogram: StepHistogram | None = None
    """How long the steps took that were seen; None before any was."""


NOT_YET: Final = Verdict(
    finding=Finding(
        kind="warming-up",
        sub=None,
        severity="info",
        share=None,
        share_low=None,
        share_high=None,
        speedup=None,
        speedup_is=None,
        headline="no step seen yet",
        evidence=(),
        advice=(),
    ),
    confidence=0.0,
    since_step=None,
    since_ns=None,
    contributors=(),
    missing=(),
)
"""Before the first window was judged."""


def unseen(pid: int, script: str, t_ns: int, t_unix: float) -> Snapshot:
    """A process before anything came from it."""
    return Snapshot(
        t_ns=t_ns,
        t_unix=t_unix,
        attached_s=0.0,
        hello=None,
        script=script,
        pid=pid,
        status=Status("no probe", "connecting", None, None, 0, 0, None, None, ()),
        verdict=NOT_YET,
        steps=None,
        recent=(),
        open_step=None,
        loaders=(),
        sawtooth=None,
        memory=MemoryView((), None, None, None, None, None, False),
        stacks=None,
        processes=(),
        cores=None,
        gpus=(),
        events=(),
    )


def as_ended(snapshot: Snapshot, how: str) -> Snapshot:
    """The same after its process went away."""
    return replace(snapshot, status=replace(snapshot.status, state="ended", ended=how))
