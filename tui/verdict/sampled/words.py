"""How a part of the samples is told: it is an estimate, and says so."""

from tui.verdict.figures import percent
from tui.verdict.findings import Evidence
from tui.verdict.ratio import Share
from tui.verdict.window import Sampled


def about(share: float) -> str:
    """ "~57%"."""
    return percent(share) if 0 < share < 0.005 else f"~{percent(share)}"


def counted(told: Sampled, share: Share, what: str) -> Evidence:
    """ "57% of 190 samples (50% to 64%) wait for data"."""
    text = f"{percent(share.mean)} of {told.samples} samples ({percent(share.low)} to "
    text += f"{percent(share.high)}) {what}"
    return Evidence(text, "py-spy", share.mean)
