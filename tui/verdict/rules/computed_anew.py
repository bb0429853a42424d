"""A parametrized weight (orthogonal, weight_norm, spectral_norm) that a loop in a net computes anew
in each turn: it is computed where a layer asks for it, and is the same until the next update."""

import re
from collections import Counter
from dataclasses import replace
from typing import Final

from ..code_places import forward_of_net, share_seen
from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import percent, times
from ..idle_ledger import keeps_up
from ..on_device import idle_of, on_device
from ..scoring import cause, speedup_of
from ..statistics import Share, product, share_of
from ..step_time import wall_of
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE
from ..window import StepWindow

TURNS: Final = (12.0, 3.0, 1_000.0)
"""Of a loop whose turns were not counted, as none is on a GPU: the mean, the least and the most.
Time steps are dozens, a fixed point takes a few."""
OF_HOOKS: Final = re.compile(r" \(torch/nn/utils/(weight_norm|spectral_norm)\.py")
"""The older form, which `cached()` knows nothing of."""
CACHED: Final = "with torch.nn.utils.parametrize.cached(): around the loop"


def computed_anew(window: StepWindow) -> Finding | None:
    """By samples of the forward: all but one of the turns' share goes, and as much of the backward,
    or more. On a GPU where that keeps up with the host: what is launched there is then gone with
    what launches it."""
    places = [place for place in forward_of_net(window) if place.anew]
    if not places or not _paced_by_host(window):
        return None
    seen = share_seen(window, places.__contains__)
    uses = None if window.settings is None else window.settings.graph_uses
    turns = TURNS if uses is None else (uses, uses, uses)
    forward = product(seen, Share(*(1.0 - 1.0 / max(1, each) for each in turns)))
    rows = window.steps
    backward = share_of([row.backward_ns for row in rows], [wall_of(row) for row in rows])
    share = Share(
        forward.mean + min(forward.mean, backward.mean),
        forward.low + min(forward.low, backward.low),
        min(1.0, forward.high + min(forward.high, backward.high)),
    )
    if share.mean < CONTRIBUTOR:
        return None
    loops = Counter[str]()
    for place in places:
        loops[place.anew] += round(place.share * place.samples)
    loop = loops.most_common(1)[0][0]
    least = speedup_of(share.low)
    how = f"{CACHED} in {loop}, {times(least)} or more: it is computed once then"
    if any(OF_HOOKS.search(place.frame) for place in places):
        how += "; with the same of torch.nn.utils.parametrizations: the older hooks do not keep it"
    text = f"{percent(seen.mean)} of the samples compute it, forward alone"
    evidence = (
        Evidence(text, "py-spy", seen.mean),
        Evidence(f"the loop in {loop} asks for it in each turn", "py-spy"),
    )
    headline = "a parametrized weight that each turn of a loop computes takes "
    headline += f"{percent(share.mean)} of each step"
    found = cause("launch", "computed-anew", share, headline, evidence, (how,))
    return replace(found, forecast=at_least(least))


def _paced_by_host(window: StepWindow) -> bool:
    """A solver waits for the GPU as it ends: on a busy one that is for other kernels too."""
    if not window.gpu_present:
        return True
    device = on_device(window)
    return device is not None and keeps_up(device) and idle_of(window) >= ENTER_SHARE
