"""Deterministic algorithms only."""

from tui.verdict.findings import Note
from tui.verdict.window import Window


def deterministic(window: Window) -> Note | None:
    """Some operations have slower kernels then, and fresh memory is filled. What that costs here,
    only a run without it would show."""
    if window.settings is None or not window.settings.deterministic:
        return None
    return Note(
        "deterministic algorithms only: torch.use_deterministic_algorithms(False), unless needed",
        None,
        "hook",
    )
