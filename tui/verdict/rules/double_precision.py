"""On a CPU: a net in float64, whose arithmetic takes twice as long as in float32 at the least."""

from dataclasses import replace
from typing import Final

from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import percent
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
convolutions (5.7x) and LSTMs (3.5x) more: oneDNN has no kernels of doubles for them. Of nets that
only call their operations (1.0 to 1.2x) nothing is claimed, or 1.1x."""


def in_float64(window: StepWindow) -> Finding | None:
    """What forward and backward take beyond calling their operations is arithmetic. Half of it is
    lost where parameters are float64; who needs its 16 digits loses nothing."""
    settings, called = window.settings, small_operations(window)
    if settings is None or settings.parameter_dtype != "float64" or called is None:
        return None
    calls_ns = called.count * MOST_NS + called.backwards * A_BACKWARD_NS
    arithmetic = called.net_share * max(0.0, 1.0 - calls_ns / (called.count * called.each_ns))
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
