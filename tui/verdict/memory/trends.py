"""The three memories that may grow (the device's, the process's, its workers'), and batch room."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, inf, isfinite
from statistics import median, median_low
from typing import Final, Literal

from ...steps import GpuMemory
from ..findings import EvidenceSource, Finding
from ..format import percent, rough_duration, size
from ..loader import SAME_UPDATE, micro_batches
from ..statistics import Slope
from ..thresholds import memory as limits
from ..thresholds.gpu import MEMORY_FULL, MOST_TIMES_LARGER
from ..window import MemoryPoint, MemoryUnit, RunEvent, RunFacts, StepWindow, Window
from .growth import Growth, growth


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """One memory."""

    kind: Literal["GPU", "host"]
    whose: str
    source: EvidenceSource
    points: Sequence[MemoryPoint]
    """After the warm-up, oldest first."""
    limit_bytes: int | None
    """What it could grow to; None: not known."""


def of_tensors(window: Window) -> MemoryPlace:
    """The device's, as PyTorch's allocator counts it."""
    warm_step = window.warm_step
    points = [
        MemoryPoint(one.step, one.t_ns, one.allocated if one.lowest is None else one.lowest)
        for one in readings(window)
        if one.step > warm_step
    ]
    limit = window.gpu_memory_limit_bytes
    if limit is not None and window.gpu_memory:
        # The free parts of blocks that are partly in use: larger requests cannot have them.
        limit -= window.gpu_memory[-1].inactive_split or 0
    return MemoryPlace("GPU", "tensors", "hook", points, limit)


def of_the_process(window: Window) -> MemoryPlace:
    """The training process's."""
    points = _warm(window.memory, window)
    return MemoryPlace("host", "the training process", "proc", points, window.memory_limit_bytes)


WORKERS: Final = "the workers' memory"
STARTED: Final = "the memory of the processes that it started"


def of_workers(window: Window) -> MemoryPlace:
    """Its DataLoader workers' together; that of other processes of its own where it has none."""
    points, limit = _warm(window.worker_memory, window), window.memory_limit_bytes
    if limit is not None and points and window.memory:
        limit += points[-1].bytes - window.memory[-1].bytes  # what is free is free for either
    whose = WORKERS if has_workers(window) else STARTED
    return MemoryPlace("host", whose, "proc", points, limit)


def has_workers(window: RunFacts) -> bool:
    """A loader's were seen, by its own marks or at work in its loop: environments, actors and
    folds are processes too."""
    marked = isinstance(window, StepWindow) and any(one.num_workers for one in window.loaders)
    return marked or (window.stacks is not None and window.stacks.worker_samples > 0)


def readings(window: RunFacts) -> list[GpuMemory]:
    """The allocator's, of the device that was read last."""
    if not window.gpu_memory:
        return []
    device = window.gpu_memory[-1].device
    return [one for one in window.gpu_memory if one.device == device]


def _warm(points: Sequence[MemoryPoint], window: Window) -> list[MemoryPoint]:
    warm_step = window.warm_step
    return [point for point in points if point.step > warm_step]


def trend(place: MemoryPlace, moments: tuple[RunEvent, ...]) -> Growth | None:
    """Growth by steps; else from one epoch, evaluation or checkpoint to the next."""
    epochs = [moment.step for moment in moments if moment.kind == "epoch"]
    found = growth(place.points, epochs)
    if found is not None or not place.points:
        return found
    for kind in ("epoch", "evaluation", "checkpoint"):
        steps = [moment.step for moment in moments if moment.kind == kind]
        lengths = [after - before for before, after in pairwise(steps[-limits.MEMORY_BLOCKS :])]
        if len(lengths) >= limits.LEAST_BLOCKS - 1:
            found = growth(place.points, (), median_low(lengths))
        if found is not None:
            return found
    return None


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """The steps that are left, by the steepest and the flattest slope of the interval."""

    earliest_steps: float
    latest_steps: float
    """Infinite where the flattest does not rise."""
    step_hours: float
    """A step of the window."""

    def urgent(self, grown: Growth) -> bool:
        """Near enough to report before the growth is confirmed, if it goes on evenly."""
        first, last = grown.blocks.lows[0].step, grown.blocks.lows[-1].step
        within = min(limits.URGENT_STEPS, limits.URGENT_SPANS * (last - first))
        return self.earliest_steps <= within and grown.even and not grown.gives_back

    @property
    def within_a_day(self) -> bool:
        """Full within a day."""
        return self.earliest_steps * self.step_hours <= limits.URGENT_HOURS

    @property
    def within_an_hour(self) -> bool:
        """Soon enough for the headline."""
        return self.earliest_steps * self.step_hours <= limits.AT_ONCE_HOURS


def time_left(left: Exhaustion) -> str:
    """ "10 to 11 min", "50 min to 2 h", "3 h at the earliest": an extrapolation has no seconds."""
    first = rough_duration(left.earliest_steps * left.step_hours)
    if not isfinite(left.latest_steps):
        return f"{first} at the earliest"
    last = rough_duration(left.latest_steps * left.step_hours)
    if first == last:
        return first
    number, unit = first.split()
    return f"{number} to {last}" if last.endswith(f" {unit}") else f"{first} to {last}"


def exhaustion(place: MemoryPlace, grown: Growth, window: Window) -> Exhaustion | None:
    """None where the limit is not known, or nothing is sure to grow."""
    if place.limit_bytes is None or grown.slope.high <= 0:
        return None
    room = max(0, place.limit_bytes - _height(place, grown, window))
    latest = room / grown.slope.low if grown.slope.low > 0 else inf
    return Exhaustion(room / grown.slope.high, latest, window.memory_unit_hours)


def _height(place: MemoryPlace, grown: Growth, window: Window) -> int:
    """What a step needs at its height. The allocator's maximum is one since the start: it is recent
    only if it rose while the memory grew."""
    since = grown.blocks.lows[0].step
    if place.kind == "host":
        return max(point.bytes for point in place.points if point.step >= since)
    recent = [one for one in readings(window) if one.step >= since]
    if recent[-1].peak_allocated > recent[0].peak_allocated:
        return recent[-1].peak_allocated
    return max(max(one.allocated, one.at_backward or 0) for one in recent)


# The trend of one memory: the same for the verdict and for the chart.

Whose = Literal["tensors", "process", "workers"]
"""The device's, the training process's, its workers' together."""


@dataclass(frozen=True, slots=True)
class MemoryTrend:
    """Memory that grows, whether or not it is reported yet."""

    whose: Whose
    slope: Slope
    """Bytes a step."""
    first: MemoryPoint
    """Where the fitted line begins: at the oldest block that it was seen over."""
    last: MemoryPoint
    """Where it ends: at the newest."""
    left: Exhaustion | None
    """When it will be full if this goes on; None where the limit is not known."""
    finding: Finding | None
    """The verdict's finding on it; None until it has shown three times in a row."""
    unit: MemoryUnit = "steps"
    """Of every number of steps here."""

    @property
    def steps(self) -> int:
        """That it was seen over."""
        return self.last.step - self.first.step


def line_of(grown: Growth) -> tuple[MemoryPoint, MemoryPoint]:
    """Both ends of the line through the blocks: their median slope, at their median height."""
    lows, slope = grown.blocks.lows, grown.slope.middle
    height = median(low.bytes - slope * low.step for low in lows)
    first, last = (
        MemoryPoint(low.step, low.t_ns, round(height + slope * low.step))
        for low in (lows[0], lows[-1])
    )
    return first, last


@dataclass(frozen=True, slots=True)
class BatchRoom:
    """The device's memory at the height of a step. Bytes."""

    kept: int
    """What stays from step to step: weights, optimizer state, gradients that are kept."""
    activations: int
    """What a step adds at its height: it grows with the batch."""
    limit: int

    @property
    def full(self) -> float:
        """Part of the memory that is taken at the height of a step, 0 to 1."""
        return (self.kept + self.activations) / self.limit

    @property
    def times_larger(self) -> int:
        """Whole times that the batch fits, short of memory that counts as full; a power of two."""
        return 1 << max(0, min(MOST_TIMES_LARGER, self.fits).bit_length() - 1)

    @property
    def fits(self) -> int:
        """The same in any number, however many."""
        if self.activations <= 0:
            return 1
        return floor((MEMORY_FULL * self.limit - self.kept) / self.activations)


def batch_room(window: RunFacts) -> BatchRoom | None:
    """None where the allocator's or the device's memory is unknown. The allocator's maximum is one
    since the start, and cuDNN's benchmark takes all memory for a moment, which goes back to the
    device (AutoVC on an H200: "93 % full", 130 GiB, of a step that needs 0.8): a step's height lies
    within what is held at its end or as its backward begins."""
    limit = window.gpu_memory_limit_bytes
    if not limit or not window.gpu_memory:
        return None
    newest = window.gpu_memory[-1]
    held = max(max(one.reserved, one.at_backward or 0) for one in readings(window))
    height = min(newest.peak_allocated, held)
    return BatchRoom(newest.allocated, max(0, height - newest.allocated), limit)


def larger_batch(window: StepWindow, why: str) -> str:
    """ "batch_size 12 → 96 (…): `why`", as far as the memory allows; of gradients that are
    accumulated all batches of an update at once."""
    room = batch_room(window)
    batch = window.loaders[0].batch_size if window.loaders else None
    if room is None:
        return f"a larger batch: {why}"
    if room.full >= MEMORY_FULL or room.times_larger < 2:
        return (
            f"a larger batch, {why}: the GPU's memory is {percent(room.full)} full, activation "
            "checkpointing (torch.utils.checkpoint) would make room"
        )
    several = merging(window)
    times = room.times_larger if several is None else several.times
    then = size(room.kept + times * room.activations)
    fits = f"{then} of {size(room.limit)} of memory then"
    if several is not None:
        return f"{several.text} ({fits}): 1/{times} of the launches; {SAME_UPDATE}"
    if batch is None:
        return f"a batch {times} times as large ({fits}): {why}"
    larger = batch * times
    return f"batch_size {batch} → {larger // 8 * 8 or larger} ({fits}): {why}"


@dataclass(frozen=True, slots=True)
class Merging:
    """Batches of one update that the GPU's memory holds at once."""

    times: int
    """So many in one."""
    text: str


def merging(window: StepWindow) -> Merging | None:
    """All that gradients are accumulated over, else the largest part of them that fits. None where
    no two do."""
    several, room = micro_batches(window), batch_room(window)
    if several is None or room is None or room.full >= MEMORY_FULL:
        return None
    if several.count <= room.fits:
        return Merging(several.count, several.merged)
    parts = (one for one in range(2, several.count) if several.count % one == 0)
    times = max((one for one in parts if one <= room.fits), default=None)
    if times is None:
        return None
    text = f"gradients of {several.count // times} batches of {times * several.size} for each "
    text += f"update instead of {several.count} of {several.size}"
    return Merging(times, text)


def to_eights(count: int) -> int:
    """The next multiple of 8: tensor cores work on tiles of it."""
    return -(-count // 8) * 8
