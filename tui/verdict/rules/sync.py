"""The host waits for the GPU, and then the GPU waits for the host."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.device import on_device
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding, Source
from tui.verdict.places import main_places, share_where, told, waits_for_gpu
from tui.verdict.ratio import Share
from tui.verdict.window import Window


def sync(window: Window) -> Finding | None:
    """Synchronisations that cost something: never the time in which the host waits, but what the
    GPU then stands idle (diagnosis 2.6).

    Without them the host would issue in the rest of its time, 1 - s, and the GPU would work for
    its busy time: R = 1 - max(busy, 1 - s). A GPU-bound loop with `loss.item()` has busy = 1 and
    loses nothing. Needs samples and a counter that tells how busy the GPU is.
    """
    told_busy = window.activity.busy if window.activity is not None else None
    places = main_places(window)
    if told_busy is None or not places or on_device(window) is None:
        return None
    waits = share_where(places, waits_for_gpu)
    if waits < policy.CONTRIBUTOR:
        return None
    busy = min(1.0, told_busy / 100)
    mean = max(0.0, 1 - max(busy, 1 - waits))
    if mean < policy.CONTRIBUTOR:
        return None
    where = tuple(told(place, "main-thread") for place in places if waits_for_gpu(place))
    lines = [place.line for place in places if waits_for_gpu(place) and place.line]
    evidence = (
        Evidence(f"the host waits for the GPU {percent(waits)} of the time", "py-spy", waits),
        Evidence(f"and the GPU is busy only {percent(busy)} of it", _source(window), busy),
        *where[:1],
    )
    advice = ["keep it on the GPU (loss.detach()) and read it every N steps, or asynchronously"]
    if lines:
        advice.insert(0, f"`{lines[0]}` waits for the GPU in every step")
    spread = min(mean, policy.ENTER_LOW)
    return bound(
        "sync",
        None,
        Share(mean, mean - spread, min(1.0, mean + spread)),
        f"waiting for the GPU leaves it idle {percent(mean)} of every step",
        evidence,
        tuple(advice),
        loader_floor(window),
    )


def _source(window: Window) -> Source:
    assert window.activity is not None
    return "gpm" if window.activity.source == "gpm" else "nvml"
