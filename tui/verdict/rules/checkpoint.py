"""Training waits for checkpoints."""

from ..findings import Finding
from ..forecast.gain import gain_of_pauses
from ..forecast.interval import seldom
from ..format import ms, percent
from ..pauses import checkpoints, pause_evidence
from ..scoring import cause
from ..thresholds.causes import LONG_PAUSE_NS, TARGET_BUDGET
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow


def checkpoint(window: StepWindow) -> Finding | None:
    """The amortised share of checkpoints, or one that lasted half a minute."""
    found = checkpoints(window)
    if found is None:
        return None
    if found.share.mean < CONTRIBUTOR and found.longest_ns < LONG_PAUSE_NS:
        return None
    evidence = pause_evidence(found, "checkpoint")
    advice: tuple[str, ...] = (
        "copy the state and write it on another thread (torch.distributed.checkpoint.async_save)",
    )
    if found.share.mean > TARGET_BUDGET:
        every = f"save every {found.affordable_steps:,} steps"
        advice = (f"{every}: it would cost {percent(TARGET_BUDGET)}", *advice)
    headline = f"checkpoints take {percent(found.share.mean)} of the time"
    if found.events == 1:
        headline = f"one checkpoint took {ms(found.longest_ns)}"
    gain = gain_of_pauses("checkpoint", window, found)
    finding = cause("checkpoint", None, found.share, headline, evidence, advice, gain=gain)
    return seldom(finding)
