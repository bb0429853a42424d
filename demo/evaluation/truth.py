"""What a cause really costs: the same script with it and without, again and again (ABBA)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

Label = Literal["bound", "contributor", "negative", "ambiguous"]

BOUND: Final = 1.10
CONTRIBUTOR: Final = 1.05
NEGATIVE: Final = 1.03
"""Gains from which, and below which, a cause is called so."""
NEARLY: Final = 0.90
"""Of several causes, any that is within 10 % of the best is a right verdict."""


@dataclass(frozen=True)
class Truth:
    """The gain of removing one cause."""

    gain: float
    """Samples a second without it, over those with it: of the medians."""
    low: float
    """The least and the most that a pair of neighbouring runs gave."""
    high: float
    label: Label
    agrees: bool
    """With what the catalogue says by construction."""
    by_construction: bool
    """Nothing to measure: there is no switch, or the cause does not cost time."""
    gains: dict[str, float] = field(default_factory=dict)
    """Where there are several causes: of removing each alone, by its kind, the main one first."""

    def gain_of(self, kind: str) -> float:
        """Of removing the cause of this kind."""
        return self.gains.get(kind, self.gain)

    def nearly_best(self) -> list[str]:
        """Of several causes, those whose removal gives nearly as much as that of the best."""
        best = max(self.gains.values(), default=0.0)
        return [kind for kind, gain in self.gains.items() if gain >= NEARLY * best]


def order(repeats: int) -> tuple[str, ...]:
    """ABBA: whatever drifts during the runs falls on both sides alike."""
    pairs = (("with", "without"), ("without", "with"))
    return tuple(purpose for turn in range(repeats) for purpose in pairs[turn % 2])


def label_of(gain: float) -> Label:
    """What a gain makes of a cause."""
    if gain >= BOUND:
        return "bound"
    if gain >= CONTRIBUTOR:
        return "contributor"
    return "negative" if gain < NEGATIVE else "ambiguous"


def measured_truth(slow: Sequence[float], fast: Sequence[float], negative: bool) -> Truth:
    """From samples a second with the cause and without, in the order in which they were run.

    Where pairs of runs disagree on whether it is a bottleneck, it is ambiguous.
    """
    gains = [after / before for before, after in zip(slow, fast, strict=True)]
    gain = median(fast) / median(slow)
    disagree = {each >= BOUND for each in gains} == {True, False}
    label: Label = "ambiguous" if disagree else label_of(gain)
    agrees = label == ("negative" if negative else "bound")
    return Truth(gain, min(gains), max(gains), label, agrees, by_construction=False)


def constructed_truth(negative: bool) -> Truth:
    """Of a scenario without a switch, or whose cause costs memory and no time."""
    return Truth(1.0, 1.0, 1.0, "negative" if negative else "bound", True, by_construction=True)
