"""Decompositions of matrices in a step, which a GPU does one rotation after the other."""

from collections.abc import Mapping
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

ONE: Final = (
    "the largest singular value alone by a step or two of power iteration "
    "(torch.nn.utils.parametrizations.spectral_norm)"
)
STACKED: Final = "all matrices of one size in one call, or anew in every 20th step alone"
INSTEAD: Final[Mapping[str, str]] = {
    "_linalg_svd": f"if that is all that is needed, {ONE}; else {STACKED}",
    "_linalg_eigh": STACKED,
    "linalg_eig": STACKED,
    "_linalg_eigvals": STACKED,
    "linalg_qr": STACKED,
}
"""By PyTorch's operators. None that solves: what it gives is needed."""
TAKES: Final = (0.95, 0.75, 1.0)
"""Of what they took as they were timed one by one: a device does some beside others."""
GOES: Final = 0.9
"""Of that, if one number of them is needed, and nothing if all are. Spectral norms
of a Lipschitz net of six layers on an H200 took 0.66 of its step's operations, and 0.71 of the step
went by power iteration (3.4x)."""

MORE: Final = 1.15
"""The GPU waits for its host behind each, which is no operation's time: it went as well there."""


def decompositions(window: StepWindow) -> Finding | None:
    """By a traced step; by the host's time where the GPU waits for it, as their loops are its."""
    seen = traced(window)
    if seen is None or not seen.host_us or not is_clocked(window):
        return None
    asking = [one for one in seen.functions if one.operation in INSTEAD]
    if not asking:
        return None
    most = max(asking, key=lambda one: one.operation_us)
    part = within_one(sum(one.operation_us for one in asking) / seen.us)
    if not is_the_limit(window):
        part = min(part, within_one(sum(one.host_us for one in asking) / seen.host_us))
    share = product(share_of_net(window), times(Share(*TAKES), part))
    if share.mean < CONTRIBUTOR:
        return None
    name, where = most.operation.lstrip("_").replace("linalg_", "torch.linalg."), shown(most.place)
    text = f"{percent(part)} of the operations' time in a traced step is {name} at {where}"
    headline = f"{name} takes {percent(share.mean)} of each step"
    advice = (f"{INSTEAD[most.operation]}: {where}",)
    evidence = (Evidence(text, source(window), part),)
    found = cause("compute", "decomposition", share, headline, evidence, advice)
    gain = speedup_of(GOES * share.mean)
    return replace(found, forecast=Forecast(gain, 1.0, speedup_of(MORE * share.high)))
