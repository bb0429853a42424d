"""How long a step takes, in words."""

from typing import Final

from tui.snapshot import StepStats
from tui.wording.numbers import milliseconds

TWO_KINDS: Final = 1.5
"""From a mean of so many medians on the median is of the one kind of step, and tells nothing of the
other: a batch that is waited for, a checkpoint."""


def usual_words(stats: StepStats) -> list[str]:
    """ "p50 24.5 ms", "p95 29.3 ms"; the mean before them where steps come in two kinds."""
    spread = [f"p50 {milliseconds(stats.p50_ms)}", f"p95 {milliseconds(stats.p95_ms)}"]
    mean_ms = sum(phase.mean_ms for phase in stats.phases)
    two_kinds = mean_ms >= TWO_KINDS * stats.p50_ms
    return [f"mean {milliseconds(mean_ms)}", *spread] if two_kinds else spread
