"""Which of the bar's parts hold what the verdict blames, where that is no part of its own."""

from collections.abc import Callable
from typing import Final

from tui.snapshot import Phase, Snapshot
from tui.verdict.findings import Kind
from tui.verdict.places import copies_to_gpu, share_where, waits_for_gpu
from tui.verdict.window import FrameShare
from tui.wording.numbers import percent

BLAMED: Final[dict[Kind, tuple[str, Callable[[FrameShare], bool]]]] = {
    "h2d": ("copies", copies_to_gpu),
    "sync": ("waits for the GPU", waits_for_gpu),
}
"""What they are called, and the places of the training thread that are such."""
LOADING: Final = ("data", "loader start-up")
"""The thread is in the loader there: it does not copy to a GPU, nor wait for one."""
MOST: Final = 0.8
"""A phase that must hold this part of them is named alone."""
LEAST: Final = 0.1
"""A shorter one is not named."""


def inside_words(snapshot: Snapshot) -> str:
    """ "copies: 63%, inside forward", by the samples of the training thread; "" where the verdict
    blames nothing of that kind, or no sample says how much it is."""
    blamed = BLAMED.get(snapshot.verdict.finding.kind)
    if blamed is None or snapshot.stacks is None or snapshot.steps is None:
        return ""
    name, which = blamed
    finding = snapshot.verdict.finding
    share = share_where(snapshot.stacks.main, which)
    if finding.kind == "h2d" and finding.share is not None:
        share = finding.share  # what the headline says: some lines copy while the GPU works
    phases = [phase for phase in snapshot.steps.phases if phase.name not in LOADING]
    names = _holding(phases, share)
    return f"{name}: {percent(share)}, inside {' + '.join(names)}" if share and names else ""


def _holding(phases: list[Phase], share: float) -> list[str]:
    """The phase that must hold most of it since the others are too short; else all that may."""
    longest = sorted(phases, key=lambda phase: -phase.share)
    rest = sum(phase.share for phase in longest[1:])
    if longest and share - rest >= MOST * share:
        return [longest[0].name]
    return [phase.name for phase in longest if phase.share >= LEAST]
