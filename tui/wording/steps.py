"""How long a step takes, in words."""

from typing import Final

from tui.snapshot import Phase, StepStats
from tui.verdict.figures import ms
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


def rare_words(phase: Phase) -> str:
    """Of a phase that few steps have, "every 10 steps, 903 ms each", as the verdict says it: its
    other figures are of all steps. Of others ""."""
    rare = None if phase.spread is None else phase.spread.rare
    if rare is None:
        return ""
    return f"every {rare.every_steps:.0f} steps, {ms(1e6 * rare.each_ms)} each"
