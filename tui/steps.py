"""Steps as `sources.marks` makes them of a probe's marks, and what was read beside them.

Recordings hold these structs, so fields are only ever appended.
"""

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from ..probe.wire import marks
from .messages import Loader, Noted
from .settings import Settings


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A completed step, or `count` merged consecutive ones. All times perf_counter_ns or ns."""

    number: int
    """Number of the (last merged) step, from 1."""
    count: int
    start_ns: int
    end_ns: int
    data_ns: int
    """Waiting in the loader, first fetches of an iterator excepted."""
    startup_ns: int
    """The first fetch of an iterator, and making it: worker start-up, epoch start."""
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    """Python between the phases: clipping, logging, metrics, whatever nobody named."""
    evaluation_ns: int
    checkpoint_ns: int
    compile_ns: int
    phases: dict[str, int]
    """User phases by name, ns; taken out of the phase they lie in."""
    fetches: int
    backwards: int
    optimizer_steps: int
    samples: int | None
    """Leading dimension of the batches, summed over the fetches; None when none was seen."""
    ready: int | None
    """Batches that lay ready when the step's first fetch began (None: not looked at)."""
    data_max_ns: int
    """Longest single fetch: a burst differs by it from a steady wait."""
    inference: bool
    """Fetch to fetch, no backward ever seen."""
    evaluation_startup_ns: int = 0
    """Of `evaluation_ns`: workers that are started for it, and ended after it where gradients are
    off around its loader. Its first batch is no part of that: it has to be made anyway."""
    shared_startup_ns: int = 0
    """That of steps in which the training's workers start as well, behind an epoch."""
    evaluation_data_ns: int = 0
    """Of `evaluation_ns`: waiting for batches of its loaders; not within a function or a phase that
    is named as an evaluation, whose fetches are not looked at."""


STEP_BOUNDS_S: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
)
"""Two or three to a factor of ten, from the fastest loop to a step of a minute."""


@dataclass(frozen=True, slots=True)
class StepHistogram:
    """How long steps took, of all that were seen. Merged steps count with their mean."""

    counts: tuple[int, ...]
    """By bucket, not added up: up to each of `STEP_BOUNDS_S`, and longer than the last of them."""
    sum_s: float

    @property
    def steps(self) -> int:
        """All of them."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class EvaluationCycle:
    """Training from one evaluation to the next, with that one at its end."""

    steps: int
    fetches: int
    wall_ns: int
    """All of it."""
    evaluation_ns: int
    """The evaluation, with the Python around it."""
    shared_ns: int
    """Of the evaluation: its own workers' start, where the training's start in the same step."""
    first: bool
    """It begins with the run's first step."""
    whole: bool = True
    """It was seen from its beginning on."""
    last_step: int = 0
    """Number of the step with the evaluation."""


class GpuStep(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A step on the clock of its GPU: the same marks, when the device reached them.

    The phases partition `gpu_end_ns - gpu_start_ns`. It comes later than its `Step`, when the
    device has caught up, and only for the steps that were sampled; so it stands alone. A row of
    several merged steps has their sums; its lags are means.
    """

    number: int
    """As `Step.number`."""
    count: int
    start_ns: int
    """The step's start and end on the host, perf_counter_ns, as in its `Step`."""
    end_ns: int
    device: int
    """CUDA index in the process."""
    gpu_start_ns: int
    """When the device reached the step's first mark, on the host's clock (± `uncertain_ns`)."""
    gpu_end_ns: int
    data_ns: int
    """The device between the marks of the fetches: nothing was launched, so it had run dry. This
    is the exposed wait."""
    startup_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    evaluation_ns: int
    checkpoint_ns: int
    compile_ns: int
    phases: dict[str, int]
    host_wait_ns: int
    """What the host waited in the same fetches: the exposed wait and the hidden one."""
    lag_start_ns: int | None
    """How long after the host the device reached the step's first mark; None for unknown, as
    while the two clocks are not aligned. The others: the last fetch, the end of the forward, of
    the backward, of the optimizer."""
    lag_data_ns: int | None
    lag_forward_ns: int | None
    lag_backward_ns: int | None
    lag_optimizer_ns: int | None
    uncertain_ns: int | None
    """Half the width of what the alignment of the two clocks leaves open; None: not aligned."""

    @property
    def wall_ns(self) -> int:
        """Length of the step on the device's clock."""
        return self.gpu_end_ns - self.gpu_start_ns

    @property
    def exposed_ns(self) -> int:
        """What the device itself waited for data, loader start-up included."""
        return self.data_ns + self.startup_ns

    @property
    def hidden_ns(self) -> int:
        """What the host waited while the device was still busy with earlier work."""
        return max(0, self.host_wait_ns - self.exposed_ns)


class GpuMemory(msgspec.Struct, frozen=True, array_like=True):
    """The caching allocator of one device, read about once a second. Bytes since the start."""

    t_ns: int
    step: int
    """Steps completed by then."""
    device: int
    allocated: int
    """At the end of a step."""
    reserved: int
    active: int
    peak_allocated: int
    """The user's own running maximum: read, never reset. It may fall when the user resets it."""
    peak_reserved: int
    at_backward: int | None
    """Allocated as the last backward began: near the height of a step."""
    retries: int
    """Allocations that had to empty the cache first."""
    ooms: int
    inactive_split: int | None = None
    """Free parts of blocks that are partly in use: held, and of no use to larger requests."""
    device_allocs: int | None = None
    """Times that memory was asked of the device itself, since the start."""
    allocations: int | None = None
    """Tensors alive at that moment: many small ones that stay are a graph that is kept."""
    lowest: int | None = None
    """The least that was allocated at the ends of steps since the reading before: batches that
    differ in length leave more or less behind."""
    fraction: float | None = None
    """Part of the device's memory that PyTorch may take; None: all of it, or not known."""
    device_frees: int | None = None
    """Times that memory was given back to the device, since the start: the cache was emptied."""


class MemoryPoint(msgspec.Struct, frozen=True):
    """Memory at a step. Every test makes thousands: a dataclass takes six times as long."""

    step: int
    t_ns: int
    bytes: int


class RunEvent(msgspec.Struct, frozen=True):
    """Something that happened at a step and may hold memory, or give it back."""

    step: int
    kind: Literal["epoch", "evaluation", "checkpoint", "workers"]
    """An epoch began, workers were started anew; or the step had the other two in it."""


class GpuClock(msgspec.Struct, frozen=True, array_like=True):
    """How the device's clock is read, and what that costs."""

    device: int
    uncertain_ns: int | None
    """Of the alignment with the host's clock; None while there is none."""
    every: int
    """One step in so many is marked on the device."""
    cost_ns: int
    """Measured on the training thread: device marks of one such step and their resolving."""
    dropped: int
    """Device marks given up since the start: the device was too far behind, or a capture ran."""


class Padding(msgspec.Struct, frozen=True, array_like=True):
    """How much of one batch is padding, by its attention mask or by its ids."""

    t_ns: int
    """When it was fetched."""
    loader: int
    """Key of its `Loader`; 0 where that is not known."""
    rows: int
    """The rest as in `messages.PaddingSeen`."""
    length: int
    kept: int
    longest: int
    by_ids: bool = False

    @property
    def positions(self) -> int:
        """All of them, padding too."""
        return self.rows * self.length


class Open(msgspec.Struct, frozen=True, array_like=True):
    """The step that is running: what the training thread did last and what it has spent so far."""

    kind: int
    """The last mark (marks.py)."""
    since_ns: int
    started_ns: int
    """Start of the open step; 0 before the first mark."""
    data_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    evaluation_ns: int
    checkpoint_ns: int
    compile_ns: int
    user_phase: str | None
    evaluating: bool


OPEN_PHASE: Final[dict[int, str]] = {
    0: "starting",
    marks.ITERATION: "loader start-up",
    marks.FETCH_ENTER: "data",
    marks.FETCH_LEAVE: "forward",
    marks.FETCH_END: "other",
    marks.FETCH_FAILED: "other",
    marks.BACKWARD_ENTER: "backward",
    marks.BACKWARD_LEAVE: "other",
    marks.OPTIMIZER_ENTER: "optimizer",
    marks.OPTIMIZER_LEAVE: "other",
    marks.OPTIMIZER_INSIDE: "backward",
    marks.PHASE_ENTER: "phase",
    marks.PHASE_LEAVE: "other",
    marks.STEP: "other",
    marks.COMPILE_ENTER: "compile",
    marks.COMPILE_LEAVE: "forward",
    marks.CHECKPOINT_ENTER: "checkpoint",
    marks.CHECKPOINT_LEAVE: "other",
    marks.LOADER: "loader start-up",
    marks.READY: "data",
    marks.TRAINING_OVER: "training over",
    marks.ENDED: "training over",
    marks.STAMPED: "other",
    marks.BATCH: "forward",
}
"""What the training thread is doing, judged from its last mark alone."""


class Batch(msgspec.Struct, frozen=True, array_like=True, tag="batch"):
    """What happened since the last batch. Numbered per peer, so that a loss is counted."""

    sequence: int
    sent_ns: int
    steps: list[Step]
    open: Open
    loaders: list[Loader]
    """Loaders that changed since the last batch to this peer; all of them in the first."""
    lost_marks: int
    """Since the start of the process."""
    rss_bytes: int | None
    """Resident host memory of the training process; None when it was not looked at this time."""
    mark_cost_ns: int | None
    """Measured cost of one mark on the training thread, where it is made."""
    marks: int
    """Marks recorded since the start."""
    fault: str | None
    gpu_steps: list[GpuStep] = []
    """Steps whose device times became known since the last batch, oldest first."""
    gpu_memory: list[GpuMemory] = []
    gpu_clocks: list[GpuClock] = []
    """One a device, about once a second."""
    settings: Settings | None = None
    """In the first batch to a peer, and when they have changed."""
    file_bytes: int | None = None
    """Pages of files in `rss_bytes`: they are let go when memory is short."""
    refused: int = 0
    """Requests since the start that were malformed, or no request that this probe knows."""
    unended: int = 0
    """Phases of the user's that were entered and not left, beyond those that are kept open."""
    notes: list[Noted] = []
    """Numbers that the run has beside its times."""
    padding: list[Padding] = []
    """Of the batches that were looked at, those with an attention mask."""
    update_wrapper_ns: tuple[int, int] | None = None
    """What PyTorch's wrapper around an update takes at the least before the update's hooks, and
    behind them: no phase's time. None where it was not measured."""
