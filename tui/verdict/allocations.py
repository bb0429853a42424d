"""What PyTorch's allocator asks of the device while training: segments, and retries."""

from dataclasses import dataclass

from ..steps import GpuMemory
from .code_places import empties_cache, share_seen
from .step_time import spent
from .thresholds import gpu as limits
from .thresholds.hysteresis import CONTRIBUTOR
from .window import StepWindow


def asked_of_device(window: StepWindow) -> float | None:
    """The most of the time, 0 to 1, that PyTorch's allocator can have spent asking the device for
    memory after the warm-up; None where it does not in most steps. With giving it back, unless
    the loop has a line that does.

    A request that had to empty the cache first may take any time: None of the rest is excluded.
    """
    warm = _warm(window)
    if warm is None:
        return None
    if (warm.last.retries - warm.first.retries) / warm.steps >= limits.RETRIES_A_STEP:
        return 1.0
    asked, whole = segments_asked(window), spent(window.steps).wall_ns
    if asked is None or not whole:
        return None
    each_ns = limits.SEGMENT_ASKED_NS if empties_in_loop(window) else limits.SEGMENT_NS
    return min(1.0, asked * window.observed * each_ns / whole)


def segments_asked(window: StepWindow) -> float | None:
    """Segments that the allocator asks of the device in a step after the warm-up; None where it
    does not in most steps."""
    warm = _warm(window)
    before, now = (
        (None, None) if warm is None else (warm.first.device_allocs, warm.last.device_allocs)
    )
    if warm is None or before is None or now is None:
        return None
    asked = (now - before) / warm.steps
    return asked if asked >= limits.SEGMENTS_A_STEP else None


def empties_in_loop(window: StepWindow) -> bool:
    """The allocator's cache is emptied as the training goes. Samples show that it takes a part of
    the time; or the segments that are asked for were given back before, by the allocator's own
    count. Where nobody counted them, samples show as much of the call as that must take: one that
    is met once gives back what one step asks for, not all of them."""
    seen = share_seen(window, empties_cache)
    if seen.low >= CONTRIBUTOR:
        return True
    asked = segments_asked(window)
    if asked is None:
        return False
    if (freed := given_back(window)) is not None:
        return freed >= limits.GIVEN_BACK * asked
    freed_ns = asked * window.observed * limits.SEGMENT_FREED_NS
    return seen.mean * spent(window.steps).wall_ns >= freed_ns


def given_back(window: StepWindow) -> float | None:
    """Segments that the allocator gives back to the device in a step after the warm-up, which it
    does where its cache is emptied; None where that was not counted, or a request that found no
    memory may have done it."""
    warm = _warm(window)
    if warm is None or warm.first.device_frees is None or warm.last.device_frees is None:
        return None
    if warm.last.retries > warm.first.retries:
        return None
    return (warm.last.device_frees - warm.first.device_frees) / warm.steps


@dataclass(frozen=True, slots=True)
class _Warm:
    """The first and last reading of the allocator after the warm-up, and the steps between."""

    first: GpuMemory
    last: GpuMemory

    @property
    def steps(self) -> int:
        return self.last.step - self.first.step


def _warm(window: StepWindow) -> _Warm | None:
    warm = [one for one in window.gpu_memory if one.step > window.warm_step]
    if len(warm) < 2 or warm[-1].step <= warm[0].step:
        return None
    return _Warm(warm[0], warm[-1])
