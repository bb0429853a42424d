"""Activations that are thrown away and computed again in the backward, though memory is free."""

from typing import Final

from ...settings import RecomputedProducts
from ..findings import Evidence, Finding
from ..format import percent, size
from ..memory.trends import batch_room
from ..on_device import share_of_steps
from ..scoring import of_net
from ..statistics import Share, product, times, within_one
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

OF_FORWARD: Final = (0.9, 0.7, 1.0)
"""Of the forward's time, over the part of its products' arithmetic: what lies beside the net, as a
loss, is not computed again. A transformer of six layers on one crowded core: 1.27x so, 1.25x in the
middle of three turns (0.86 to 1.43)."""
HIDDEN: Final = (0.8, 0.4, 1.0)
"""The same where the graph does not show how much of the net it is: blocks mostly, and no head."""
FITS: Final = 8
"""Times as large as it is a batch must fit, so that all may be kept: of a layer of a transformer a
checkpoint keeps the input, and without it are 10 to 17 times as much (Korthikanti et al., Reducing
Activation Recomputation, 2022: 34 sbh for 2 sbh), beside one layer that is kept in any case."""
SOME_FIT: Final = 2
"""…so that those of some layers may be."""


def recomputation(window: StepWindow) -> Finding | None:
    """The forward's part of a step, on the GPU's clock where that is read; where memory is short
    it is no cause, but the cure."""
    settings = window.settings
    again = None if settings is None else settings.recomputed_products
    advice = _advice(window)
    if again is None or advice is None:
        return None
    share = product(share_of_steps(window, lambda row: row.forward_ns), _of_forward(again))
    if share.mean < CONTRIBUTOR:
        return None
    text = "torch.utils.checkpoint throws activations away, and computes them again in the backward"
    if again.part and not again.hidden:
        text += f": those of {percent(again.part)} of all products' arithmetic"
    evidence = [Evidence(text, "hook", again.part)]
    if (room := batch_room(window)) is not None:
        taken = f"{size(room.kept + room.activations)} of {size(room.limit)} of the GPU's memory "
        evidence.append(Evidence(f"{taken}are taken at the most", "hook", room.full))
    headline = f"{percent(share.mean)} of each step computes activations again, for memory"
    return of_net("recomputation", share, headline, evidence, (advice,))


def _of_forward(again: RecomputedProducts) -> Share:
    if again.hidden:
        return Share(*HIDDEN)
    return times(Share(*OF_FORWARD), within_one(again.part))


def _advice(window: StepWindow) -> str | None:
    """None where memory does not allow any, or is not known."""
    alone = "without torch.utils.checkpoint (gradient_checkpointing=False)"
    if not window.gpu_present:
        held, limit = window.memory[-1].bytes if window.memory else None, window.memory_limit_bytes
        return alone if held and limit and limit >= FITS * held else None
    room = batch_room(window)
    if room is None or room.times_larger < SOME_FIT:
        return None
    return alone if room.times_larger >= FITS else "torch.utils.checkpoint on fewer layers"
