"""The host waits for the GPU, and then the GPU waits for the host."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.device import counted_by, on_device
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.places import main_places, share_where, told, waits_for_gpu
from tui.verdict.ratio import without_rows
from tui.verdict.window import Window


def sync(window: Window) -> Finding | None:
    """Synchronisations that cost something: never the time in which the host waits, but what the
    GPU then stands idle (diagnosis 2.6).

    Without them the host would issue in the rest of its time, 1 - s, and the GPU would work for
    its busy time: R = 1 - max(busy, 1 - s). A GPU-bound loop with `loss.item()` has busy = 1 and
    loses nothing. Needs samples and a counter that tells how busy the GPU is.
    """
    known = window.activity
    places = main_places(window)
    if known is None or known.busy is None or not places or on_device(window) is None:
        return None
    waits = share_where(places, waits_for_gpu)
    if waits < policy.CONTRIBUTOR:
        return None
    busy = min(1.0, known.busy / 100)
    mean = max(0.0, 1 - max(busy, 1 - waits))
    if mean < policy.CONTRIBUTOR:
        return None
    where = tuple(told(place, "main-thread") for place in places if waits_for_gpu(place))
    lines = [place.line for place in places if waits_for_gpu(place) and place.line]
    evidence = (
        Evidence(f"the host waits for the GPU {percent(waits)} of the time", "py-spy", waits),
        Evidence(f"and the GPU is busy only {percent(busy)} of it", counted_by(known), busy),
        *where[:1],
    )
    advice = ["keep it on the GPU (loss.detach()) and read it every N steps, or asynchronously"]
    if lines:
        advice.insert(0, f"`{lines[0]}` waits for the GPU in every step")
    return bound(
        "sync",
        None,
        without_rows(mean),
        f"waiting for the GPU leaves it idle {percent(mean)} of every step",
        evidence,
        tuple(advice),
        loader_floor(window),
    )
