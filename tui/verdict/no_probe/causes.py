"""The main thread is found in Python between the phases, or waiting for the GPU there."""

from ..code_places import by_user_function, is_users, place_evidence, place_name
from ..findings import Evidence, Finding, Kind
from ..format import percent
from ..gpu_clock import counted_by
from ..rules.optimizer import for_this_optimizer
from ..scoring import cause
from ..statistics import Share, without_rows
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import SampleWindow
from .samples import about, counted, gpu_exposed, idles, knows_gpu


def host(window: SampleWindow) -> Finding | None:
    """Without a GPU a line that would wait for one is Python like any other. With one, only as much
    as it stood idle for; abstains without such a counter."""
    known = window.sampled
    own = known.share("other")
    if not window.gpu_present:
        waits = known.share("synchronisation")
        own = Share(*(min(1.0, a + b) for a, b in zip(_ends(own), _ends(waits), strict=True)))
    elif not knows_gpu(window):
        return None
    share = gpu_exposed(window, own)
    if share.mean < CONTRIBUTOR:
        return None
    mine = by_user_function(filter(is_users, known.host))
    evidence = (
        counted(known, own, "are in Python between the phases"),
        *(place_evidence(place, "main-thread") for place in mine[:1]),
        *idles(window),
    )
    advice = ["do it less often, or on another thread, or in one tensor expression"]
    if mine:
        advice.insert(0, f"look at {place_name(mine[0])}")
    headline = f"{about(share.mean)} of the time is in Python between the phases"
    return cause("host", None, share, headline, evidence, tuple(advice))


def sync(window: SampleWindow) -> Finding | None:
    """R = 1 - max(busy, 1 - s), as with a probe: what the GPU idles because the host waited."""
    known, activity = window.sampled, window.activity
    if not window.gpu_present or activity is None or activity.busy is None:
        return None
    waits = known.share("synchronisation")
    busy = min(1.0, activity.busy / 100)
    mean = max(0.0, 1 - max(busy, 1 - waits.mean))
    if mean < CONTRIBUTOR:
        return None
    text = f"the GPU is busy only {percent(busy)} of the time"
    evidence = (
        counted(known, waits, "wait for the GPU"),
        Evidence(text, counted_by(activity), busy),
    )
    advice = ("keep it on the GPU (.detach()) and read it every hundred steps",)
    headline = f"host waits for the GPU leave it idle {about(mean)} of the time"
    return cause("sync", None, without_rows(mean), headline, evidence, advice)


def _ends(share: Share) -> tuple[float, float, float]:
    return share.mean, share.low, share.high


# Causes that bear the name of what the main thread is found in.


def checkpoint(window: SampleWindow) -> Finding | None:
    """While it writes, nothing trains, on the host or on the GPU."""
    advice = (
        "save less often",
        "copy the state and write it on another thread (torch.distributed.checkpoint.async_save)",
    )
    return _held(window, "checkpoint", "checkpoint", "checkpoints take", "are in a save", advice)


def evaluation(window: SampleWindow) -> Finding | None:
    """Whether it is worth its time is the user's decision."""
    advice = (
        "evaluate less often, or on a part of the held-out set",
        "with a larger batch under torch.inference_mode()",
    )
    return _held(window, "evaluation", "evaluation", "evaluation takes", "evaluate", advice)


def recompile(window: SampleWindow) -> Finding | None:
    """A run that was found compiling again and again; its start is left out."""
    advice = (
        "shapes that vary: torch.compile(dynamic=True), or pad to a few sizes",
        "TORCH_LOGS=recompiles,graph_breaks names the guards that failed",
    )
    return _held(window, "recompile", "compile", "recompilation takes", "compile", advice)


def optimizer(window: SampleWindow) -> Finding | None:
    """Without a GPU alone: with one, where the host is says nothing of how long its update takes
    there."""
    if window.gpu_present:
        return None
    advice = for_this_optimizer(window)
    clause = "are in the optimizer"
    return _held(window, "optimizer", "optimizer", "the optimizer takes", clause, advice)


def _held(
    window: SampleWindow, kind: Kind, phase: str, what: str, clause: str, advice: tuple[str, ...]
) -> Finding | None:
    known = window.sampled
    share = known.share(phase)
    if share.mean < CONTRIBUTOR:
        return None
    headline = f"{what} {about(share.mean)} of the time"
    return cause(kind, None, share, headline, (counted(known, share, clause),), advice)
