"""The scope: samples of the GPU folded on the starts of the steps, as an oscilloscope triggers.

A sample covers 100 ms. Where the steps are shorter than a few of those no picture over time shows
what happens within one; folded, many samples tell it together, because each covers other parts of
a step. What they cannot tell is not shown: the picture is kept back where the steps are not alike,
or keep time with the samples, or where one part of the samples does not foretell the others.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import cos, hypot, pi, sin, sqrt
from statistics import median
from typing import Final, NamedTuple

from tui.session.folding import Covered, Equations, equations, error, solved, together
from tui.snapshot import Scope

PARTS: Final = 12
MOST_SAMPLES: Final = 240
"""24 s: enough for the noise of a sample (1 to 2 points), short enough to be about now."""
LEAST_SAMPLES: Final = 120
LEAST_STEPS: Final = 10
QUARTERS: Final = 4
ALIKE: Final = 0.15
"""A step this far from the median one is left out, with the samples that touch it."""
MOSTLY: Final = 0.8
"""So much of the samples must lie in steps that are alike."""
SMOOTHINGS: Final = (0.003, 0.1)
"""The first follows a profile with sharp edges, the second one that hardly moves; the quarters
choose."""
HARMONICS: Final = 2
UNCERTAIN: Final = 3.0
"""Points: a profile whose coarsest waves are not known to this is not shown. In simulations with
sample times 10 ms off (tests/unit/session/test_scope.py) what passes is right to 15 points."""
IN_TIME: Final = 0.9
"""From here on the samples come at the same few phases of a step, again and again."""


class Reading(NamedTuple):
    """One sample: the mean over a stretch of time, percent."""

    start_ns: int
    end_ns: int
    value: float


def folded(readings: Sequence[Reading], edges_ns: Sequence[int], source: str) -> Scope | None:
    """The profile of one step, from readings in time order.

    `edges_ns`: where each step begins, oldest first, and where the last one ends. None where the
    readings do not tell a profile.
    """
    if len(edges_ns) <= LEAST_STEPS or len(readings) < LEAST_SAMPLES:
        return None
    readings = readings[-MOST_SAMPLES:]
    edges_ns = edges_ns[max(0, bisect_right(edges_ns, readings[0].start_ns) - 1) :]
    if len(edges_ns) <= LEAST_STEPS:
        return None
    lengths = [after - before for before, after in pairwise(edges_ns)]
    step_ns = median(lengths)
    covered = _placed(readings, edges_ns, lengths, step_ns)
    if len(covered) < max(LEAST_SAMPLES, MOSTLY * len(readings)) or _keeps_time(covered):
        return None
    steps = round(covered[-1].end - covered[0].begin)
    size = len(covered) // QUARTERS
    quarters = [equations(covered[i * size : (i + 1) * size], PARTS) for i in range(QUARTERS)]
    wrong, mean, fits = min(_fitted(quarters, smoothing) for smoothing in SMOOTHINGS)
    if steps < LEAST_STEPS or _uncertain(covered, wrong) > UNCERTAIN:
        return None
    return Scope(
        step_ns=round(step_ns),
        steps=steps,
        source=source,
        mean=mean,
        low=tuple(map(min, zip(mean, *fits, strict=True))),
        high=tuple(map(max, zip(mean, *fits, strict=True))),
    )


def _placed(
    readings: Sequence[Reading], edges_ns: Sequence[int], lengths: Sequence[int], step_ns: float
) -> list[Covered]:
    """The readings in steps since the first edge; those that touch an unusual step are left out."""
    odd = [0]
    for length in lengths:
        odd.append(odd[-1] + (abs(length - step_ns) > ALIKE * step_ns))
    covered: list[Covered] = []
    for start_ns, end_ns, value in readings:
        first = bisect_right(edges_ns, start_ns) - 1
        last = bisect_right(edges_ns, end_ns) - 1
        if first < 0 or last >= len(lengths) or odd[last + 1] > odd[first] or end_ns <= start_ns:
            continue
        begin = first + (start_ns - edges_ns[first]) / lengths[first]
        end = last + (end_ns - edges_ns[last]) / lengths[last]
        covered.append(Covered(begin, end, value))
    return covered


def _fitted(
    quarters: Sequence[Equations], smoothing: float
) -> tuple[float, tuple[float, ...], list[tuple[float, ...]]]:
    """How wrong the quarters are about each other (mean square), the profile by all of them, and
    by each."""
    every = together(quarters)
    flat = [sum(every.right) / every.samples] * PARTS
    mean = solved(every, smoothing, flat)
    fits = [solved(quarter, smoothing, mean) for quarter in quarters]
    wrong = [
        error(other, fit)
        for fit, own in zip(fits, quarters, strict=True)
        for other in quarters
        if other is not own
    ]
    return sum(wrong) / len(wrong), mean, fits


def _uncertain(covered: Sequence[Covered], wrong: float) -> float:
    """Points by which the profile's coarsest waves may be off.

    A stretch of x periods passes on sin(pi m x) / (pi m x) of a wave with m periods a step: nothing
    of one that it covers a whole number of times. Least squares over n samples then know the wave's
    height to sqrt(2 / n) of their noise, over what is passed on.
    """
    worst = 0.0
    for wave in range(1, HARMONICS + 1):
        angles = [pi * wave * (one.end - one.begin) for one in covered]
        passed = sqrt(sum((sin(angle) / angle) ** 2 for angle in angles) / len(angles))
        worst = max(worst, sqrt(2 * wrong / len(covered)) / max(passed, 1e-6))
    return worst


def _keeps_time(covered: Sequence[Covered]) -> bool:
    """Whether the samples begin at four phases of a step at most, so that waves look alike."""
    for phases in range(1, 5):
        angles = [2 * pi * phases * one.begin for one in covered]
        if hypot(sum(map(cos, angles)), sum(map(sin, angles))) > IN_TIME * len(covered):
            return True
    return False
