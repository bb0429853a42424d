"""Training waits for checkpoints."""

from .. import thresholds
from ..findings import Finding
from ..forecast.gain import gain_of_pauses
from ..format import percent
from ..pauses import checkpoints, shows
from ..scoring import bound
from ..window import Window


def checkpoint(window: Window) -> Finding | None:
    """The amortised share of checkpoints, or one that lasted half a minute."""
    found = checkpoints(window)
    if found is None:
        return None
    if found.share.mean < thresholds.CONTRIBUTOR and found.longest_ns < thresholds.LONG_PAUSE_NS:
        return None
    evidence = shows(found, "a checkpoint")
    advice = (
        f"save every {found.affordable_steps:,} steps: it would cost "
        f"{percent(thresholds.TARGET_BUDGET)}",
        "copy the state and write it on another thread (torch.distributed.checkpoint.async_save)",
    )
    headline = f"checkpoints take {percent(found.share.mean)} of the time"
    gain = gain_of_pauses("checkpoint", window, found)
    return bound("checkpoint", None, found.share, headline, evidence, advice, gain=gain)
