"""The main thread is found in Python between the phases, or waiting for the GPU there."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.device import counted_by
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.places import by_user_function, is_users, spot, told
from tui.verdict.ratio import Share, without_rows
from tui.verdict.sampled.felt import felt, idles, knows_gpu, sampled_of
from tui.verdict.sampled.words import about, counted
from tui.verdict.window import Window


def host(window: Window) -> Finding | None:
    """Without a GPU a line that would wait for one is Python like any other. With one, only as much
    as it stood idle for; abstains where no counter tells that."""
    known = sampled_of(window)
    own = known.share("other")
    if not window.gpu_present:
        waits = known.share("synchronisation")
        own = Share(*(min(1.0, a + b) for a, b in zip(_ends(own), _ends(waits), strict=True)))
    elif not knows_gpu(window):
        return None
    share = felt(window, own)
    if share.mean < policy.CONTRIBUTOR:
        return None
    mine = by_user_function(filter(is_users, known.host))
    evidence = (
        counted(known, own, "are in Python between the phases"),
        *(told(place, "main-thread") for place in mine[:1]),
        *idles(window),
    )
    advice = ["do it less often, or on another thread, or in one tensor expression"]
    if mine:
        advice.insert(0, f"look at {spot(mine[0])}")
    headline = f"{about(share.mean)} of the time is in Python between the phases"
    return bound("host", None, share, headline, evidence, tuple(advice))


def sync(window: Window) -> Finding | None:
    """R = 1 - max(busy, 1 - s), as with a probe: what the GPU idles because the host waited."""
    known, activity = sampled_of(window), window.activity
    if not window.gpu_present or activity is None or activity.busy is None:
        return None
    waits = known.share("synchronisation")
    busy = min(1.0, activity.busy / 100)
    mean = max(0.0, 1 - max(busy, 1 - waits.mean))
    if mean < policy.CONTRIBUTOR:
        return None
    text = f"the GPU is busy only {percent(busy)} of the time"
    evidence = (
        counted(known, waits, "wait for the GPU"),
        Evidence(text, counted_by(activity), busy),
    )
    advice = ("keep it on the GPU (.detach()) and read it every hundred steps",)
    headline = f"waiting for the GPU leaves it idle {about(mean)} of the time"
    return bound("sync", None, without_rows(mean), headline, evidence, advice)


def _ends(share: Share) -> tuple[float, float, float]:
    return share.mean, share.low, share.high
