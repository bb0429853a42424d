"""What PyTorch's allocator asks of the device while training: segments, and retries."""

from .code_places import empties_cache, main_places
from .step_time import spent
from .thresholds import gpu as limits
from .window import StepWindow


def asked_of_device(window: StepWindow) -> float | None:
    """The most of the time, 0 to 1, that PyTorch's allocator can have spent asking the device for
    memory after the warm-up; None where it does not in most steps. With giving it back, unless
    samples show the line that does.

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
    emptied = any(map(empties_cache, main_places(window)))
    each_ns = limits.SEGMENT_ASKED_NS if emptied else limits.SEGMENT_NS
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
