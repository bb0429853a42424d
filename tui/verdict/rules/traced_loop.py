"""A loop of the program, in a traced step, whose turns do not need each other: small operations for
one part of a batch after the other, which one expression computes for all."""

from dataclasses import replace
from typing import Final

from ..findings import Evidence, Finding
from ..forecast.interval import interval_of
from ..format import percent
from ..on_device import is_clocked, is_the_limit, share_of_steps
from ..scoring import cause, speedup_of
from ..statistics import Share, product, times, within_one
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, source, traced
from ..window import StepWindow

OF_LAUNCHES: Final = (0.9, 0.6, 1.0)
"""Of what they take on the host of a GPU, all but one turn's: a contrastive loss over 64 utterances
on an H200 took 0.74 of the host's time in 4,227 operations, and 0.70 went (3.4x)."""
OF_CALLS: Final = (0.8, 0.5, 1.0)
"""The same on a CPU, where the arithmetic stays."""
SMALL_US: Final = 30.0
"""On a CPU, of one operation: what is longer computes, and calling it takes 6 to 10 us of it."""


def traced_loop(window: StepWindow) -> Finding | None:
    """Where a GPU waits for its host; on a CPU of small operations."""
    seen = traced(window)
    loop = None if seen is None else seen.loop
    if seen is None or loop is None or not seen.host_us or not is_clocked(window):
        return None
    if is_the_limit(window) and (
        window.gpu_present or loop.host_us > SMALL_US * max(1, loop.operations)
    ):
        return None
    part = within_one(loop.host_us / seen.host_us)
    goes = times(Share(*(OF_LAUNCHES if window.gpu_present else OF_CALLS)), 1 - 1 / loop.turns)
    net = share_of_steps(window, lambda row: row.forward_ns + row.backward_ns)
    share = product(net, times(goes, part))
    if share.mean < CONTRIBUTOR:
        return None
    where = shown(loop.place)
    text = f"{loop.operations:,} of {seen.operations:,} operations of a traced step are asked for "
    text += (
        f"by lines of a loop, some {loop.turns:,} times each: {percent(part)} of the host's time"
    )
    found = cause(
        "launch",
        "loop",
        share,
        f"{percent(share.mean)} of each step are operations of a line that do not need each other",
        (Evidence(text, source(window), part),),
        (f"one tensor expression for all of them, instead of a loop: {where}",),
    )
    shares = share.mean, share.low, share.high
    return replace(found, forecast=interval_of("launch", speedup_of(share.mean), *shares))
