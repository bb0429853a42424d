"""Anomaly detection was left on."""

from tui.verdict.figures import percent
from tui.verdict.findings import Note
from tui.verdict.notes.costs import phase_share
from tui.verdict.window import Window


def anomaly(window: Window) -> Note | None:
    """It keeps a stack for every operation and looks for NaN after every node of the backward. How
    much of the backward that is, only a run without it would show."""
    if window.settings is None or not window.settings.anomaly:
        return None
    share, source = phase_share(window, "backward")
    return Note(
        "anomaly detection was left on: torch.autograd.set_detect_anomaly(False)",
        f"it slows the backward, {percent(share)} of every step",
        source,
    )
