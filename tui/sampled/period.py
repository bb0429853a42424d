"""How long a step takes, by the moments at which the main thread comes back to its backward.

Not by the GPU's activity, whose readings lie 100 ms apart: over demo/recordings (steps of 9 to 170
ms on an H200) the period after which it is most like itself was told in 26 of 300 looks, and was
within 10 % of the step in none: it was that of the checkpoints, or of batches that come at once.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from tui.sampled.table import Phase

INTERVALS: Final = 4
"""A step shorter than four samples may have been passed over between two of them."""
RETURNS: Final = 10
"""Fewer returns are not a rhythm."""
ALIKE: Final = 0.2
"""Returns within this part of their median are alike…"""
REGULAR: Final = 0.6
"""…and so many of them must be. Steps of 5 to 300 ms, which return to their samples at random, pass
in 1 of 100 minutes; steps of 500 ms and more are told to 5 % (simulated)."""
GAP: Final = 3.0
"""Samples further apart than this many intervals belong to different stretches."""

Moment = tuple[int, Phase]
"""perf_counter_ns, and what was done."""


def period_ns(moments: Sequence[Moment], interval_ns: int) -> float | None:
    """The median time between two entries into the backward, of the phases that come once a step
    the longest; None where the rhythm is faster than samples can follow, or there is none.

    `interval_ns` is what samples lie apart, on average.
    """
    for phase in ("backward", "data", "optimizer", "forward"):
        found = _between_returns(moments, phase, interval_ns)
        if found is not None:
            return found
    return None


def _between_returns(moments: Sequence[Moment], phase: str, interval_ns: int) -> float | None:
    entries: list[int] = []
    spans: list[int] = []
    for (before_ns, before), (at_ns, now) in pairwise(moments):
        if at_ns - before_ns > GAP * interval_ns:
            spans += _spans(entries)
            entries = []
        elif now == phase and before != phase:
            entries.append((before_ns + at_ns) // 2)
    spans += _spans(entries)
    if len(spans) < RETURNS:
        return None
    middle = median(spans)
    near = sum(abs(span - middle) <= ALIKE * middle for span in spans)
    if middle < INTERVALS * interval_ns or near < REGULAR * len(spans):
        return None
    return middle


def _spans(entries: Sequence[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(entries)]
