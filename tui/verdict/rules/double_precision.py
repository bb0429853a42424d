"""A net in float64, whose arithmetic takes twice as long as in float32 at the least."""

from dataclasses import replace
from typing import Final

from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import percent
from ..on_device import is_the_limit, share_of_net
from ..scoring import cause, speedup_of
from ..statistics import Share
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow
from .small_operations import MOST_NS, small_operations

FLOAT32: Final = "float32 instead of float64, up to 2x: model.float(), and batches as float32"
A_BACKWARD_NS: Final = 40_000
"""What a forward and its backward take beside their operations, whatever they compute."""
LOST: Final = 0.5
"""Of arithmetic in float64: a vector has half as many numbers, and each twice the bytes."""
AT_LEAST: Final = 0.75
"""Of the gain that follows. Seven nets on one and two cores (torch 2.13) gave 0.78 to 1.2 times it,
convolutions (5.7x) and LSTMs (3.5x) more: oneDNN has no kernels of doubles for them. A transformer
on an H200 gave 1.2 times it (2.1x), which has half the rate of float32; most GPUs have a 32nd. Of
nets that only call their operations (1.0 to 1.2x) nothing is claimed, or 1.1x."""


def in_float64(window: StepWindow) -> Finding | None:
    """What forward and backward take beyond calling their operations is arithmetic. Half of it is
    lost where parameters are float64; who needs its 16 digits loses nothing."""
    settings = window.settings
    if settings is None or settings.parameter_dtype != "float64":
        return None
    arithmetic = _on_gpu(window) if window.gpu_present else _on_host(window)
    lost = LOST * arithmetic
    if lost < CONTRIBUTOR:
        return None
    text = f"parameters are float64; {percent(arithmetic)} of each step is the net's arithmetic"
    found = cause(
        "compute",
        "float64",
        Share(lost, AT_LEAST * lost, min(1.0, 1.2 * lost)),
        f"float64 takes {percent(lost)} of each step more than float32 would",
        (Evidence(text, "hook", arithmetic),),
        (f"{FLOAT32}, where its 7 digits are enough",),
    )
    gain = speedup_of(lost) - 1.0
    return replace(found, forecast=at_least(1.0 + AT_LEAST * gain))


def _on_host(window: StepWindow) -> float:
    called = small_operations(window)
    if called is None:
        return 0.0
    calls_ns = called.count * MOST_NS + called.backwards * A_BACKWARD_NS
    return called.net_share * max(0.0, 1.0 - calls_ns / (called.count * called.each_ns))


def _on_gpu(window: StepWindow) -> float:
    """All that it does in forward and backward, unless it waits for its host."""
    if not is_the_limit(window):
        return 0.0
    return share_of_net(window).mean
