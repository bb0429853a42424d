"""Training waits for checkpoints."""

from typing import Final

from ..findings import Evidence, Finding
from ..forecast.gain import gain_of_pauses
from ..forecast.interval import seldom
from ..format import ms, percent, size
from ..pauses import checkpoints, pause_evidence
from ..scoring import cause
from ..thresholds.causes import LONG_PAUSE_NS, TARGET_BUDGET
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

MANY_TENSORS: Final = 1_000
SMALL_BYTES: Final = 4_096
TENSOR_NS: Final = 50_000.0
"""The mean size of tensors that are so many for nothing but their number to be what they cost, and
what each takes as it is written from a GPU (ES-RNN's 18,452 of one number, 1 s a checkpoint on an
H200; held in one, all of its step was 2.3x as fast)…"""
MUCH_OF_IT: Final = 0.3
"""…and the part of a checkpoint's time that this explains."""


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
    if (whole := _in_one(window, found.each_ns)) is not None:
        evidence, advice = (*evidence, whole[0]), (*advice[:-1], whole[1], advice[-1])
    headline = f"checkpoints take {percent(found.share.mean)} of the time"
    if found.events == 1:
        headline = f"one checkpoint took {ms(found.longest_ns)}"
    gain = gain_of_pauses("checkpoint", window, found)
    finding = cause("checkpoint", None, found.share, headline, evidence, advice, gain=gain)
    return seldom(finding)


def _in_one(window: StepWindow, each_ns: float) -> tuple[Evidence, str] | None:
    """Of a state in very many small tensors, as parameters of its own for each series or word."""
    settings = window.settings
    count = 0 if settings is None else settings.parameters or 0
    held = 0 if settings is None else settings.parameter_bytes or 0
    if count < MANY_TENSORS or held >= SMALL_BYTES * count:
        return None
    if count * TENSOR_NS < MUCH_OF_IT * each_ns:
        return None
    text = f"it learns {count:,} tensors of {size(round(held / count))} each, on average"
    return (
        Evidence(text, "hook", float(count)),
        "keep them in one tensor, or a table (nn.Embedding): each is saved, clipped and updated by "
        "itself",
    )
