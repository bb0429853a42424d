"""What sources deliver: the only way anything enters the session, and what a recording holds."""

from typing import Literal

import msgspec

from ..messages import Hello
from ..steps import Batch
from ..verdict.findings import MissingSignal, Signal
from ..verdict.format import size
from ..verdict.job.exchange import CollectiveKind, Fabric, RankDdp, StepExchange
from ..verdict.job.standing import StandingRank


class Observation(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Base of all observations. Absent values are None, not 0."""

    t_ns: int
    """`perf_counter_ns` of the monitor's, on Linux the probe's too."""


class Greeted(Observation, frozen=True, kw_only=True, tag="greeted"):
    """The probe answered (or its page was read): who the target is."""

    hello: Hello


class Delivered(Observation, frozen=True, kw_only=True, tag="delivered"):
    """A batch of steps from the probe."""

    batch: Batch
    lost: int = 0
    """Messages missing before this one."""


LinkState = Literal["connected", "silent", "left", "malformed"]
"""The probe answers; it does not; it has left; a message could not be read."""


class Link(Observation, frozen=True, kw_only=True, tag="link"):
    """The feed's state changed."""

    state: LinkState
    detail: str = ""


class PageSeen(Observation, frozen=True, kw_only=True, tag="page"):
    """The words of the state page: readable even while the process cannot answer."""

    open_kind: int
    open_since_ns: int
    steps: int
    heartbeat_ns: int
    state: int


ProcessRole = Literal["main", "worker", "child", "launcher", "rank"]
"""Launchers, and ranks other than the target, are around its tree."""


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One process over the last interval."""

    pid: int
    role: ProcessRole
    name: str
    cpu_percent: float | None
    """Of one core; None at first."""
    rss_bytes: int
    pss_bytes: int | None
    """Proportional set size, where it was read (workers, every tenth time)."""
    read_bytes_s: float | None
    write_bytes_s: float | None
    status: str
    """Kernel state: R running, S sleeping, D waiting for a disk, T stopped, Z zombie."""
    threads: int
    run_delay_percent: float | None = None
    """Part of the interval in which its main thread was ready and had no core (schedstat)."""
    file_bytes: int | None = None
    """Pages of files in it, let go when memory is short; of a worker in its proportional size."""
    thread_cpu_percent: float | None = None
    """CPU of its main thread alone, of one core; None where the kernel does not report it."""
    parent: int | None = None
    """Pid of its parent."""
    pin_cpu_percent: float | None = None
    """CPU of its thread that pins batches, of one core; None without one."""
    rank: int | None = None
    """Of a launcher's other child: its RANK; None where that is not known."""
    in_kernel_percent: float | None = None
    page_faults_s: float | None = None
    """Of its main thread: CPU time in the kernel, of one core, and pages that it was given."""


class ProcessesSeen(Observation, frozen=True, kw_only=True, tag="processes"):
    """The target's process tree, and the machine."""

    processes: tuple[ProcessUse, ...]
    cores: float
    """Cores that the target may use: affinity and cgroup quota, the smaller."""
    machine_cpu_percent: float | None
    """Of all its cores together, 0 to 100."""
    memory_total_bytes: int
    memory_available_bytes: int
    throttled_percent: float | None = None
    """Part of the interval in which its CPU quota held it back; None without a quota."""
    others_cpu_percent: float | None = None
    """That other processes use of its cores, of one core; None while one of its own is new."""
    around: tuple[ProcessUse, ...] = ()
    """Its launcher, and the launcher's other children."""


ThreadRole = Literal["main", "worker", "pin", "other"]
"""The training thread, a loader worker's, the one that pins batches, any other."""


class StackCount(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One distinct stack and how often it was seen."""

    role: ThreadRole
    pid: int
    thread: str
    frames: tuple[str, ...]
    """Outermost first, "function (file:line)"."""
    count: int
    line: str = ""
    """Text of the innermost line of the user's own code in it, where that could be read."""
    moments: int = 0
    """Bits of the chunk's moments at which it was seen; 0 where no times are known."""
    in_parts: str = ""
    evaluates: bool = False
    in_turns: str = ""
    unpacked: bool = False
    computes: bool = False
    acts: bool | None = None
    feeds: bool = False
    in_step: bool = False
    padded_again: bool = False
    chooses: bool = False
    fixed: bool = False
    anew: str = ""
    beside: bool = False
    one_row: str = ""
    redrawn: bool = False
    pairs: bool | None = None
    """What its source says, as in `source_text.structure.Structure`."""


class StacksSeen(Observation, frozen=True, kw_only=True, tag="stacks"):
    """Samples of one py-spy chunk."""

    started_ns: int
    samples: int
    """Moments sampled in the chunk."""
    stacks: tuple[StackCount, ...]
    moments_ms: tuple[int, ...] = ()
    """When the samples were taken, after `started_ns`; () where that is not known."""
    seen: int = 0
    """Bits of the moments at which some stack had changed: of the others times are estimates."""
    among: tuple[int, ...] = ()
    """Where one worker was sampled in its turn: the pids of all."""


class DumpSeen(Observation, frozen=True, kw_only=True, tag="dump"):
    """The stacks of all threads, as the probe itself dumped them."""

    taken_ns: int
    stacks: tuple[StackCount, ...]
    """The training thread's is "main", and first."""
    left_out: int
    """Threads left out because there were too many."""


class OtherProcess(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A process on the device that is not the target."""

    pid: int
    name: str
    """Its command, or "" where it lives in another pid namespace."""
    memory_bytes: int | None
    sm_percent: float | None
    """Its share of the device's time by NVML; None where that is not known."""


ActivitySource = Literal["gpm", "samples", "utilization"]
"""GPM every 100 ms (Hopper and newer), or NVML's samples or utilization every 200 ms."""


class Activity(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What one GPU did in the interval before `t_ns`: percent of it; None without such a figure."""

    index: int
    """NVML's, as in `GpuUse`."""
    source: ActivitySource
    interval_ns: int
    busy: float | None
    """Anything at all ran: GPM's graphics utilisation, or NVML's."""
    sm: float | None = None
    """Streaming multiprocessors with work: what the sawtooth shows."""
    occupancy: float | None = None
    tensor: float | None = None
    fp32: float | None = None
    dram: float | None = None
    pcie_rx_mb_s: float | None = None
    """Towards the device."""
    pcie_tx_mb_s: float | None = None
    nvlink_rx_mb_s: float | None = None
    nvlink_tx_mb_s: float | None = None


class GpuUse(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One GPU at one moment, by NVML."""

    uuid: str
    index: int
    name: str
    utilization_percent: float | None
    memory_used_bytes: int
    memory_total_bytes: int
    target_memory_bytes: int | None
    power_w: float | None
    sm_clock_mhz: int | None
    temperature_c: int | None
    throttle_reasons: tuple[str, ...] = ()
    memory_clock_mhz: int | None = None
    power_limit_w: float | None = None
    others: tuple[OtherProcess, ...] = ()
    """Processes other than the target that hold a context on the device."""
    max_sm_clock_mhz: int | None = None
    """The highest that the device goes to."""
    pcie_generation: int | None = None
    pcie_width: int | None = None
    """The fastest link to the host that both allow (5, 16 lanes); an unused one runs slower."""
    energy_j: float | None = None
    """Since the driver was loaded; None where the device does not count it."""


class GpusSeen(Observation, frozen=True, kw_only=True, tag="gpus"):
    """All the GPUs that the target uses."""

    gpus: tuple[GpuUse, ...]


class ActivitySeen(Observation, frozen=True, kw_only=True, tag="activity"):
    """A reading of every GPU that the target uses; none where the device had not refreshed it."""

    gpus: tuple[Activity, ...]


class RankUse(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One rank of the target's job on this host, by its state page, over the last interval."""

    rank: int
    pid: int
    running: bool
    """Its process is there."""
    state: int
    """The page's, `probe.wire.page.STATE_*`."""
    steps: int
    """Completed since its probe was armed."""
    open_kind: int  # the last mark, as in `PageSeen`
    open_since_ns: int
    heartbeat_ns: int
    counted: int
    """Steps that ended in the interval and were seen; the times are sums over them."""
    wall_ns: int
    data_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    device: int | None
    """NVML's index of its GPU; None without one, or where it is not known which."""
    device_busy_percent: float | None = None
    """Of the interval, by NVML."""
    device_memory_bytes: int | None = None  # in use on the device, by all processes
    device_total_bytes: int | None = None
    checkpoint_ns: int = 0
    evaluation_ns: int = 0
    device_others: int | None = None
    """Processes on its device that are no rank of the job; None: not known whose they are."""
    host: str = ""
    """Where it is; "" for the target's own host."""
    linked: bool = True
    """False where the link to its host is lost: these are the last figures."""
    device_others_sm: float | None = None
    """Percent of its device's time that those use together, a mean of 5 s; None: not known."""
    device_active_percent: float | None = None
    """Of the interval in which anything ran on its device, by the device's own counters, and…"""
    device_sm_percent: float | None = None
    """…of its multiprocessors that were at work; None without counters, or an older recording."""
    stopped: bool = False  # the kernel holds it: a signal or a debugger does


class RanksSeen(Observation, frozen=True, kw_only=True, tag="ranks"):
    """The ranks of the target's job on this host, the target among them, by number."""

    world_size: int
    """Ranks of the whole job, those on other hosts included."""
    interval_ns: int
    """The rows are of this long before `t_ns`."""
    ranks: tuple[RankUse, ...]


class CollectivesSeen(Observation, frozen=True, kw_only=True, tag="collectives"):
    """The collectives of all ranks here in the steps that are new."""

    ranks: tuple[int, ...]
    steps: tuple[StepExchange, ...]
    ddp: tuple[RankDdp, ...] = ()
    cost_ns: int = 0
    """To the training thread that read longest."""
    kinds: tuple[CollectiveKind, ...] = ()
    """Of all entries that the lowest rank had."""
    fabric: Fabric | None = None
    """Of all collectives of the reading that were timed."""
    hosts: tuple[str, ...] = ()
    """Of each rank, as in `RankUse`; () where all are on the target's."""


class PendingSeen(Observation, frozen=True, kw_only=True, tag="pending"):
    """The collective in which ranks stand while none moves; numbers below 0: none of these does."""

    number: int
    name: str = ""
    bytes: int | None = None
    inside: tuple[int, ...] = ()
    outside: tuple[int, ...] = ()
    ranks: tuple[StandingRank, ...] = ()
    group: str = ""
    members: tuple[int, ...] = ()
    """Ranks that stand here, by number; its process group, and all ranks of that, () if unknown."""


class Missing(Observation, frozen=True, kw_only=True, tag="missing"):
    """A signal cannot be had, and why. `reason` "": it can again."""

    source: Signal
    reason: str
    fix: str = ""
    instead: str = ""

    @property
    def signal(self) -> MissingSignal:
        """What is missing."""
        return MissingSignal(self.source, self.reason, self.fix, self.instead)


FullMemory = Literal["", "limit", "machine"]
"""What was full as the kernel killed for want of memory: a cgroup, the machine; "": it did not."""


class TargetEnded(Observation, frozen=True, kw_only=True, tag="ended"):
    """The target has ended. Its exit status is known only where its parent has not read it yet."""

    how: str = ""
    """Unused: recordings hold a text here."""
    code: int | None = None
    """Its exit code, where it ended by itself."""
    signal: int | None = None
    """The signal that killed it."""
    full: FullMemory = ""
    limit_bytes: int | None = None
    """Of the cgroup."""

    @property
    def text(self) -> str:
        """ "was killed (signal 9)", as far as it is known."""
        if self.full and not self.code:
            return f"was killed by the kernel: {self._full_text}"
        if self.full:
            killed = f"the kernel killed another process of it: {self._full_text}"
            return f"exited with code {self.code} ({killed})"
        if self.signal:
            return f"was killed (signal {self.signal})"
        known = f"exited with code {self.code}" if self.code else "exited normally"
        return "ended" if self.code is None else known

    @property
    def _full_text(self) -> str:
        if self.full == "machine":
            return "the memory of the machine was full"
        limit = "" if self.limit_bytes is None else f" of {size(self.limit_bytes)}"
        return f"its memory limit{limit} was reached (cgroup)"


AnyObservation = (
    Greeted
    | Delivered
    | Link
    | PageSeen
    | ProcessesSeen
    | StacksSeen
    | DumpSeen
    | GpusSeen
    | ActivitySeen
    | RanksSeen
    | CollectivesSeen
    | PendingSeen
    | Missing
    | TargetEnded
)
