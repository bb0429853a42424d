"""What PyTorch's allocator asks of the device while training: segments, and retries."""

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
    warm = [one for one in window.gpu_memory if one.step > window.warm_step]
    if len(warm) < 2 or warm[-1].step <= warm[0].step:
        return None
    steps = warm[-1].step - warm[0].step
    if (warm[-1].retries - warm[0].retries) / steps >= limits.RETRIES_A_STEP:
        return 1.0
    asked, whole = segments_asked(window), spent(window.steps).wall_ns
    if asked is None or not whole:
        return None
    each_ns = limits.SEGMENT_ASKED_NS if empties_in_loop(window) else limits.SEGMENT_NS
    return min(1.0, asked * window.observed * each_ns / whole)


def segments_asked(window: StepWindow) -> float | None:
    """Segments that the allocator asks of the device in a step after the warm-up; None where it
    does not in most steps."""
    warm = [one for one in window.gpu_memory if one.step > window.warm_step]
    if len(warm) < 2 or warm[-1].step <= warm[0].step:
        return None
    before, now = warm[0].device_allocs, warm[-1].device_allocs
    if before is None or now is None:
        return None
    asked = (now - before) / (warm[-1].step - warm[0].step)
    return asked if asked >= limits.SEGMENTS_A_STEP else None


def empties_in_loop(window: StepWindow) -> bool:
    """Samples show that the allocator's cache is emptied as the training goes: it takes a part of
    the time, or as long as it must for the segments that are then asked for again. A call that is
    met once gives back what one step asks for, not all of them."""
    seen, whole = share_seen(window, empties_cache), spent(window.steps).wall_ns
    if seen.low >= CONTRIBUTOR:
        return True
    asked = segments_asked(window)
    freed_ns = None if asked is None else asked * window.observed * limits.SEGMENT_FREED_NS
    return freed_ns is not None and seen.mean * whole >= freed_ns
