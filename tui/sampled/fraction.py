"""A part of the samples, and how well it is known."""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import Final

from tui.verdict.ratio import Share

Z90: Final = 1.645
"""Two-sided 90 % of a normal distribution."""
FEWEST: Final = 1.0
"""However alike they are, all samples together count as one at least."""


def fraction_of(held: Sequence[bool]) -> Share:
    """The part of the samples at which something held, in the order in which they were taken, with
    its 90 % interval (Wilson's, of as many samples as they are worth)."""
    if not held:
        return Share(0.0, 0.0, 1.0)
    mean = sum(held) / len(held)
    worth = effective(held)
    spread = Z90 * Z90 / worth
    middle = (mean + spread / 2) / (1 + spread)
    half = Z90 / (1 + spread) * sqrt(mean * (1 - mean) / worth + spread / (4 * worth))
    return Share(mean, max(0.0, min(mean, middle - half)), min(1.0, max(mean, middle + half)))


def effective(held: Sequence[bool]) -> float:
    """Independent samples that as many are worth: within one long wait each sample repeats the one
    before it. Of a chain with two states whose neighbours correlate by r, n (1 - r) / (1 + r)."""
    count, mean = len(held), sum(held) / len(held)
    variance = mean * (1 - mean)
    if count < 2 or variance <= 0:
        return float(count)
    both = sum(one and other for one, other in pairwise(held)) / (count - 1)
    alike = min(1.0, max(0.0, (both - mean * mean) / variance))
    return max(FEWEST, count * (1 - alike) / (1 + alike))
