"""Launches come late because the thread that makes them waits for a core."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.ratio import Share, without_rows
from tui.verdict.starved import remedies, shows, starved
from tui.verdict.window import Window


def cpu_starved(window: Window, bubble: Share) -> Finding | None:
    """Where waiting for a core explains half of the `bubble` in which the GPU waits for launches:
    then cores are the cure, not fewer kernels."""
    lack = starved(window)
    if lack is None:
        return None
    part = min(lack.share, bubble.mean)
    if part < max(policy.ENTER_SHARE, policy.STARVED_EXPLAINS * bubble.mean):
        return None
    idle = f"the GPU waits for the next kernel {percent(bubble.mean)} of every step"
    return bound(
        "launch",
        "cpu-starved",
        without_rows(part),
        f"the thread that launches kernels waits for a core {percent(lack.share)} of the time",
        (*shows(window, lack), Evidence(idle, "event", bubble.mean)),
        remedies(window, lack),
        loader_floor(window),
    )
