"""What PyTorch's allocator asks of the device while training: segments, and retries."""

from dataclasses import dataclass

from ..steps import GpuMemory
from .code_places import empties_cache, share_seen
from .loader import training_loader
from .memory.trends import readings
from .step_time import spent
from .thresholds import gpu as limits
from .thresholds.hysteresis import CONTRIBUTOR
from .window import RunFacts, StepWindow


@dataclass(frozen=True, slots=True)
class WarmCounts:
    """The first and the last reading of the allocator after the warm-up."""

    first: GpuMemory
    last: GpuMemory

    @property
    def steps(self) -> int:
        """Between the two, 1 or more."""
        return self.last.step - self.first.step

    @property
    def retries(self) -> int:
        """Allocations between them that had to empty the cache first."""
        return self.last.retries - self.first.retries

    @property
    def asked(self) -> float | None:
        """Segments asked of the device in a step; None where that was not counted."""
        return self._in_a_step(self.first.device_allocs, self.last.device_allocs)

    @property
    def given_back(self) -> float | None:
        """Segments given back to it in a step; None where that was not counted."""
        return self._in_a_step(self.first.device_frees, self.last.device_frees)

    def _in_a_step(self, before: int | None, now: int | None) -> float | None:
        return None if before is None or now is None else (now - before) / self.steps


def warm_counts(window: StepWindow) -> WarmCounts | None:
    """None while there are no two of them, of different steps."""
    warm = [one for one in readings(window) if one.step > window.warm_step]
    if len(warm) < 2 or warm[-1].step <= warm[0].step:
        return None
    return WarmCounts(warm[0], warm[-1])


def asked_of_device(window: StepWindow) -> float | None:
    """The most of the time, 0 to 1, that PyTorch's allocator can have spent asking the device for
    memory after the warm-up; None where it does not in most steps. With giving it back, unless
    the loop has a line that does.

    A request that had to empty the cache first may take any time: None of the rest is excluded.
    """
    counts = warm_counts(window)
    if counts is None:
        return None
    if counts.retries / counts.steps >= limits.RETRIES_A_STEP:
        return 1.0
    asked, whole = segments_asked(window), spent(window.steps).wall_ns
    if asked is None or not whole:
        return None
    each_ns = limits.SEGMENT_ASKED_NS if empties_in_loop(window) else limits.SEGMENT_NS
    return min(1.0, asked * window.observed * each_ns / whole)


def segments_asked(window: StepWindow) -> float | None:
    """Segments that the allocator asks of the device in a step after the warm-up; None where it
    does not in most steps."""
    counts = warm_counts(window)
    asked = None if counts is None else counts.asked
    return asked if asked is not None and asked >= limits.SEGMENTS_A_STEP else None


def empties_in_loop(window: StepWindow) -> bool:
    """The allocator's cache is emptied as the training goes. Samples show that it takes a part of
    the time; or the segments that are asked for were given back before, by the allocator's own
    count. Where nobody counted them, or a request that found no memory may have emptied it, samples
    show as much of the call as that must take: one that is met once gives back what one step asks
    for, not all of them; and where it gives memory back by itself."""
    seen = share_seen(window, empties_cache)
    if seen.low >= CONTRIBUTOR:
        return True
    counts, asked = warm_counts(window), segments_asked(window)
    if counts is None or asked is None:
        return False
    if counts.given_back is not None and not counts.retries and not _gives_back_itself(window):
        return counts.given_back >= limits.GIVEN_BACK * asked
    freed_ns = asked * window.observed * limits.SEGMENT_FREED_NS
    return seen.mean * spent(window.steps).wall_ns >= freed_ns


def _gives_back_itself(window: StepWindow) -> bool:
    """PyTorch may: with nearly all memory in use the allocator frees what does not fit (with
    `max_split_size_mb` without counting a retry), and cuDNN empties the cache behind each size that
    it tries kernels for."""
    if is_full(window):
        return True
    training = training_loader(window)
    benchmark = window.settings is not None and bool(window.settings.cudnn_benchmark)
    return benchmark and training is not None and training.varies is not False


def is_full(window: RunFacts) -> bool:
    """Nearly all memory that the allocator could grow to was held at once."""
    limit, last = window.gpu_memory_limit_bytes, window.gpu_memory[-1]
    return bool(limit) and last.peak_reserved >= limits.MEMORY_FULL * (limit or 0)
