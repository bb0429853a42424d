"""Too early: rather "warming up (4/10)" than a guess."""

from .. import thresholds
from ..findings import Finding
from ..scoring import plain
from ..window import Window


def warming_up(window: Window) -> Finding | None:
    """Until there are 10 steps after the warm-up."""
    have = sum(row.count for row in window.steps)
    if not window.warmup_left and have >= thresholds.LEAST_STEPS:
        return None
    if not window.steps_seen:
        return plain("warming-up", None, "info", "no step seen yet")
    if not have:
        # The first steps are left out: say how far off the verdict is instead.
        return plain("warming-up", None, "info", f"warming up: {window.warmup_left} more steps")
    return plain("warming-up", None, "info", f"warming up ({have}/{thresholds.LEAST_STEPS})")
