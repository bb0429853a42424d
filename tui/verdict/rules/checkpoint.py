"""Training waits for checkpoints."""

from typing import Final

from ..findings import Finding
from ..forecast.gain import gain_of_pauses
from ..forecast.interval import seldom
from ..format import ms, percent, size
from ..memory.trends import batch_room
from ..pauses import checkpoints, pause_evidence
from ..scoring import cause
from ..thresholds.causes import LONG_PAUSE_NS, TARGET_BUDGET
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

WITH_STATE: Final = 4
"""Times the bytes of what is trained, with gradients and Adam's two moments."""
MOST_FROZEN: Final = 4
"""Times what is trained: less may be batches that are kept."""


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
    if (apart := _only_the_trained(window)) is not None:
        advice = (*advice, apart)
    headline = f"checkpoints take {percent(found.share.mean)} of the time"
    if found.events == 1:
        headline = f"one checkpoint took {ms(found.longest_ns)}"
    gain = gain_of_pauses("checkpoint", window, found)
    finding = cause("checkpoint", None, found.share, headline, evidence, advice, gain=gain)
    return seldom(finding)


def _only_the_trained(window: StepWindow) -> str | None:
    """Of a net on a GPU most of which does not learn, as under a LoRA: what stays between two steps
    is the net, and of what is trained gradients and the optimizer's state too. The frozen 0.9
    billion in each checkpoint, left out, made a LoRA on an H200 1.1 and 1.75x as fast."""
    room, settings = batch_room(window), window.settings
    trained = None if settings is None else settings.parameter_bytes
    if room is None or not trained or (settings is not None and settings.host_parameters):
        return None
    frozen = room.kept - WITH_STATE * trained
    if frozen < MOST_FROZEN * trained:
        return None
    return (
        f"save only what is trained, {size(trained)}: some {size(frozen)} beside it stay as they "
        "are, and belong in one file"
    )
