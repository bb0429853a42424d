"""Singular values in a step, which a GPU finds one rotation after the other."""

from dataclasses import replace
from typing import Final

from ..findings import Evidence, Finding, Forecast
from ..format import percent
from ..on_device import is_clocked, is_the_limit, share_of_net
from ..scoring import cause, speedup_of
from ..statistics import Share, product, times, within_one
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, source, traced
from ..window import StepWindow

SVD: Final = "_linalg_svd"
"""PyTorch's operator of `torch.linalg.svd`, `svdvals`, and `matrix_norm` with ord=2."""
INSTEAD: Final = (
    "if the largest is all that is needed, that alone by a step or two of power iteration "
    "(torch.nn.utils.parametrizations.spectral_norm)"
)
TAKES: Final = (0.95, 0.75, 1.0)
"""Of what they took as they were timed one by one: a device does some beside others."""
GOES: Final = 0.9
"""Of that, if one of them is needed, and nothing if all are. Spectral norms of a Lipschitz net of
six layers on an H200 took 0.66 of its step's operations, and 0.71 of the step went by power
iteration (3.4x)."""
MORE: Final = 1.15
"""The GPU waits for its host behind each, which is no operation's time: it went as well there."""


def singular_values(window: StepWindow) -> Finding | None:
    """By a traced step; by the host's time where the GPU waits for it, as their loops are its."""
    seen = traced(window)
    if seen is None or not seen.host_us or not is_clocked(window):
        return None
    asking = [one for one in seen.functions if one.operation == SVD]
    if not asking:
        return None
    most = max(asking, key=lambda one: one.operation_us)
    part = within_one(sum(one.operation_us for one in asking) / seen.us)
    if not is_the_limit(window):
        part = min(part, within_one(sum(one.host_us for one in asking) / seen.host_us))
    share = product(share_of_net(window), times(Share(*TAKES), part))
    if share.mean < CONTRIBUTOR:
        return None
    where = shown(most.place)
    text = (
        f"{percent(part)} of the operations' time in a traced step is torch.linalg.svd at {where}"
    )
    headline = f"singular values take {percent(share.mean)} of each step"
    advice = (f"{INSTEAD}: {where}",)
    evidence = (Evidence(text, source(window), part),)
    found = cause("compute", "singular-values", share, headline, evidence, advice)
    gain = speedup_of(GOES * share.mean)
    return replace(found, forecast=Forecast(gain, 1.0, speedup_of(MORE * share.high)))
