"""Phases of the user's own, which lie over those that the hooks see."""

from gpuwatch.tui.sources.marks.open_step import OpenStep
from gpuwatch.tui.sources.marks.overlays import MOST_OPEN, Overlays


def test_phases_that_never_end_are_bounded_and_the_last_still_count() -> None:
    overlays, step = Overlays(), OpenStep(0)
    for at in range(10_000):
        overlays.enter(f"phase {at}", at)
    assert len(overlays._open) == MOST_OPEN
    assert overlays.unended == 10_000 - MOST_OPEN
    overlays.leave("phase 9999", 10_500, step)
    assert step.phases == {"phase 9999": 501}
