"""What rules judge: a window of steps, or of stack samples. Plain values, no clock, no device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeVar

from ..messages import Loader
from ..settings import Settings
from ..steps import EvaluationCycle, GpuMemory, GpuStep, Padding, Step
from ..steps import MemoryPoint as MemoryPoint
from ..steps import RunEvent as RunEvent
from .findings import MissingSignal
from .gpu_activity import GpuActivity
from .job.facts import Job
from .stack_samples import Sampled, Stacks, WorkersAt
from .step_time import spent

SeenBy = Literal["py-spy", "probe"]
"""Who saw a stack: the sampler from outside, or the probe, once, as nothing moved."""


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """DataLoader workers over the window."""

    count: int
    cpu_percent: float | None
    """Mean of one worker, of one core."""
    disk_wait_share: float | None
    """Part of the moments in which a worker was in state D."""
    read_bytes_s: float | None
    """All workers together."""
    run_delay: float | None = None
    """Part of the time in which one of them was ready to run and had no core, 0 to 1."""
    exited: int = 0
    """Others that came and went within the last minute."""
    oldest_s: float = 0.0
    """How long the first of those that are there now has been seen, at most a minute."""
    cpu_each: tuple[tuple[float, float], ...] = ()
    """Of each one that is there now its least reading and its mean, in percent of a core; without
    those that were not read."""
    other_threads_percent: float | None = None
    """Of one core, what a worker's threads use beside its main one: the mean of one worker."""


@dataclass(frozen=True, slots=True)
class HostUse:
    """How the training got its cores over an interval; None: not known."""

    main_cpu_percent: float | None = None
    """The training process, of one core."""
    thread_cpu: float | None = None
    """The training thread alone, 0 to 1."""
    run_delay: float | None = None
    """Part of the time in which the training thread was ready to run and had none, 0 to 1."""
    cpu_throttled: float | None = None
    """Part of the time in which the quota held the process back, 0 to 1."""
    others_cores: float | None = None
    """Cores that processes of others used, of those that it may run on."""
    beside_cores: float | None = None
    """Cores that its own other threads and processes used beside the training thread."""
    in_kernel: float | None = None
    """Part of the time in which the training thread ran in the kernel, 0 to 1."""
    page_faults_s: float | None = None
    """Pages of memory a second that it was given there."""
    pin_cpu: float | None = None
    """Of a core, 0 to 1, what the loader's thread uses that pins batches: it receives them too."""


@dataclass(frozen=True, slots=True)
class InCollectives:
    """This rank's time in collectives, as parts of its time, 0 to 1."""

    waiting: float
    """For ranks that come later."""
    transfer: float
    """While data moves and compute does not hide it; all of it where that is not known."""

    @property
    def share(self) -> float:
        """Both."""
        return min(1.0, self.waiting + self.transfer)


@dataclass(frozen=True, slots=True)
class OpenStep:
    """What the training thread is doing now."""

    phase: str
    """One of steps.OPEN_PHASE's values, "evaluation", or a user phase's name."""
    age_s: float
    """Since the last mark, seconds."""
    step_age_s: float | None
    """Since the open step began."""
    evaluating: bool
    frame: str | None
    """Where the main thread is, if stacks know."""
    stack: tuple[str, ...] = ()
    """The way there: its frames from the user's outermost one on, outermost first."""
    seen_by: SeenBy = "py-spy"
    workers: tuple[WorkersAt, ...] = ()
    """Where the loader's workers are, if stacks know: those that make a batch first."""
    at_prompt: bool = False
    """It is a notebook's, and as far as stacks know waits for a cell to run."""
    evaluated_s: float = 0.0
    """Of the open step, seconds."""
    step_lasted_s: float | None = None
    """Of `step_age_s` what is known: until the newest message, or look at the probe's page."""

    @property
    def ends(self) -> bool:
        """There is a step to come to an end."""
        return self.phase not in ("starting", "training over")


class TimeSpan(Protocol):
    """A part of the observed time: a step (or several merged), or a stack sample's interval."""

    @property
    def start_ns(self) -> int:
        """When it began, perf_counter_ns."""

    @property
    def end_ns(self) -> int:
        """When it ended."""


@dataclass(frozen=True, slots=True)
class SampleSpan:
    """A sample of the main thread's stack and the interval that it stands for."""

    start_ns: int
    end_ns: int
    phase: str
    """As in `Sampled.shares`."""


MemoryUnit = Literal["steps", "s"]
"""What memory trends count in: seconds where no steps are seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What both kinds of window know of a run. Fields that only a probe delivers are empty without
    one."""

    now_ns: int
    cores: float | None
    machine_cpu_percent: float | None
    host: HostUse
    workers: WorkerUse | None
    stacks: Stacks | None
    memory: tuple[MemoryPoint, ...]
    """Resident memory of the main process without pages of files, points at least 1 s apart."""
    worker_memory: tuple[MemoryPoint, ...]
    memory_limit_bytes: int | None
    """What the process could still grow to: that memory plus what the machine has free."""
    gpu_present: bool
    ended: bool
    missing: tuple[MissingSignal, ...]
    steps_seen: int = 0
    """Steps since the probe was armed."""
    loaders: tuple[Loader, ...] = ()
    """Training loaders, the one fetched from most lately first."""
    evaluation_loaders: tuple[Loader, ...] = ()
    """Those of evaluations, of which `loaders` has none."""
    padding: tuple[Padding, ...] = ()
    """Of that one's batches those whose mask was looked at; oldest first."""
    gpu_steps: tuple[GpuStep, ...] = ()
    """The window's steps on the GPU's clock, those that were measured; oldest first."""
    activity: GpuActivity | None = None
    """Means of the GPU's counters over the window; None without counters."""
    gpu_memory: tuple[GpuMemory, ...] = ()
    gpu_memory_limit_bytes: int | None = None
    """What PyTorch's allocator could grow to: free on its GPU and held, or the part it may take."""
    settings: Settings | None = None
    """How PyTorch is set up there; None until the probe reports it."""
    warm_step: int = 0
    """Last step of the warm-up, as far as known; 0 before."""
    moments: tuple[RunEvent, ...] = ()
    """Over the run, the newest of each kind; oldest first."""
    workers_grown: tuple[int, ...] = ()
    """Growth of each present worker since it was first measured, bytes (proportional)."""
    stopped: bool = False
    killed: bool = False
    """The kernel holds it (SIGSTOP, a debugger); it has ended without its probe's last message."""
    world_size: int = 1
    """Ranks of its job, on all hosts."""
    clips: bool = False
    """Gradients are clipped: the norm that this takes was seen."""
    collectives: InCollectives | None = None
    """None in a job of one rank, and where collectives are not measured."""

    def __hash__(self) -> int:
        """By its moment, so that results can be cached per window: rows hold dictionaries."""
        return hash(self.now_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWindow(RunFacts):
    """Recent steps of a run with a probe, oldest first, warm-up excluded."""

    memory_unit: ClassVar[MemoryUnit] = "steps"

    steps: tuple[Step, ...]
    """At most WINDOW_ROWS, all after the warm-up and after the last change point."""
    warmup_left: int
    """Steps still needed before there is a verdict; 0 once warm."""
    all_recent: tuple[Step, ...]
    """Recent steps with nothing excluded: for checkpoint and evaluation budgets."""
    compiled: tuple[Step, ...]
    """Those with a compilation of all steps that the session holds: 16 s of the fastest loop."""
    open_step: OpenStep | None
    cycles: tuple[EvaluationCycle, ...] = ()
    """The newest ones, oldest first."""
    under_way: EvaluationCycle | None = None
    """The run's first one, before its end: no step ends in its evaluation."""
    gpu_clocked: bool = False
    """The probe reads the GPU's clock, or may begin to: step times come once the GPU is done."""
    job: Job | None = None
    """None in a job of one rank."""
    gpu_unused: bool = False
    """There is a GPU, and the process uses none: it is judged like one on a machine without."""
    mark_cost_ns: int | None = None
    update_wrapper_ns: tuple[int, int] | None = None
    """As `steps.Batch` has them."""
    __hash__ = RunFacts.__hash__

    @property
    def spans(self) -> Sequence[TimeSpan]:
        """The steps."""
        return self.steps

    @property
    def observed(self) -> int:
        """Steps; a merged row counts as many."""
        return sum(row.count for row in self.steps)

    @property
    def passes(self) -> float:
        """Backwards a step, each with its forward: one at the least."""
        return max(1.0, sum(row.backwards for row in self.steps) / max(1, self.observed))

    @property
    def attributed(self) -> float:
        """Share of the time that phases explain, 0 to 1."""
        return spent(self.steps).attributed

    @property
    def sees_loading(self) -> bool:
        """A fetch was seen."""
        return any(row.fetches for row in self.steps)

    @property
    def unmoved_s(self) -> float:
        """Since the last mark."""
        return 0.0 if self.open_step is None else self.open_step.age_s

    @property
    def memory_unit_hours(self) -> float:
        """Of `memory_unit`: the mean step of the window."""
        total = spent(self.steps)
        return total.wall_ns / max(1, total.steps) / 3.6e12


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWindow(RunFacts):
    """Recent stack samples of a run without a probe."""

    memory_unit: ClassVar[MemoryUnit] = "s"

    samples: tuple[SampleSpan, ...]
    sampled: Sampled

    __hash__ = RunFacts.__hash__

    @property
    def spans(self) -> Sequence[TimeSpan]:
        """The samples."""
        return self.samples

    @property
    def observed(self) -> int:
        """Samples."""
        return len(self.samples)

    @property
    def attributed(self) -> float:
        """Every sample has a phase."""
        return 1.0 if self.samples else 0.0

    @property
    def sees_loading(self) -> bool:
        """A sample waits for data."""
        return any(one.phase == "data" for one in self.samples)

    @property
    def unmoved_s(self) -> float:
        """Since the first of the newest samples that show the same line."""
        return 0.0 if self.sampled.still is None else self.sampled.still.age_s

    @property
    def memory_unit_hours(self) -> float:
        """Of `memory_unit`."""
        return 1 / 3600


Window = StepWindow | SampleWindow
WindowT = TypeVar("WindowT", StepWindow, SampleWindow)
