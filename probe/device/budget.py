"""How many steps may be marked on the device: the arithmetic of the probe's promise on cost."""

from typing import Final

SHARE: Final = 0.003
"""Part of the training thread's time that device marks may take (diagnosis.md 2.1: 0.3 %). With
the host's marks that leaves a 20 ms step below 0.5 %, and a 5 ms step below 1 %."""
LEAST: Final = 2
"""Boundaries that hold one complete step."""
UNWATCHED_NS: Final = 1_000_000_000
"""Nobody looks: one complete step a second, so that a monitor that comes finds some."""


def boundaries_for(cost_ns: int, turn_ns: int) -> int:
    """Step boundaries to stamp in a turn of that length, watched, at that cost a step.

    A run whose turn has fewer is stamped without a gap.
    """
    return max(LEAST, 1 + round(SHARE * turn_ns / max(1, cost_ns)))
