"""Too early: "warming up (4/10)" instead of a guess."""

from typing import Final

from ..findings import Finding, find_missing
from ..gpu_clock import on_device
from ..scoring import state
from ..thresholds.gpu import GPU_CLOCK_DUE_NS
from ..thresholds.hysteresis import LEAST_STEPS
from ..window import StepWindow
from ..window_selection import enough_of, long_enough

NO_STEP: Final = "no step seen yet"


def warming_up(window: StepWindow) -> Finding | None:
    """Until there are 10 steps after the warm-up, or a few long ones."""
    have = window.observed
    if not window.warmup_left and (have >= LEAST_STEPS or long_enough(window.steps)):
        return None
    if not window.steps_seen:
        return state("warming-up", None, "info", NO_STEP)
    if not have:
        # The first steps are left out: say how far off the verdict is instead.
        return state("warming-up", None, "info", f"warming up: {window.warmup_left} more steps")
    return state("warming-up", None, "info", f"warming up ({have}/{enough_of(window.steps)})")


def gpu_clock_due(window: StepWindow) -> Finding | None:
    """The GPU's clock will cover these steps, and does not yet."""
    if not (window.gpu_present and window.gpu_clocked) or window.ended:
        return None
    if on_device(window) is not None:
        return None
    if window.steps[-1].end_ns - window.steps[0].start_ns >= GPU_CLOCK_DUE_NS:
        return None
    return state("warming-up", None, "info", "waiting for the GPU's own step times")


def collectives_due(window: StepWindow) -> Finding | None:
    """The collectives of its ranks will show whether a job's GPU works or waits, and do not yet."""
    job = window.job
    if job is None or not job.reading or window.ended:
        return None
    if find_missing(window.missing, "collectives") is not None:
        return None
    text = f"reading the collectives of {len(job.ranks)} ranks"
    return state("warming-up", None, "info", text)
