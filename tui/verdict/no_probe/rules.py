"""The main thread is found in Python between the phases, or waiting for the GPU there."""

from typing import Final

from .. import thresholds
from ..code_places import by_user_function, is_users, spot, told
from ..findings import Evidence, Finding, Kind
from ..format import percent
from ..gpu_clock import counted_by
from ..rules import Rule
from ..rules.contention import contention
from ..rules.optimizer import for_this_optimizer
from ..rules.throttled import throttled
from ..scoring import bound
from ..statistics import Share, without_rows
from ..window import Window
from .input import input_bound
from .samples import about, counted, felt, idles, knows_gpu, sampled_of


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
    if share.mean < thresholds.CONTRIBUTOR:
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
    if mean < thresholds.CONTRIBUTOR:
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


# Causes that bear the name of what the main thread is found in.


def checkpoint(window: Window) -> Finding | None:
    """While it writes, nothing trains, on the host or on the GPU."""
    advice = (
        "save more rarely: every step between two saves pays for them",
        "copy the state and write it on another thread (torch.distributed.checkpoint.async_save)",
    )
    return _held(window, "checkpoint", "checkpoint", "checkpoints take", "are in a save", advice)


def evaluation(window: Window) -> Finding | None:
    """Whether it is worth its time is for the user to say."""
    advice = (
        "evaluate more rarely, or on a part of the held-out set",
        "with a larger batch under torch.inference_mode()",
    )
    return _held(window, "evaluation", "evaluation", "evaluation takes", "evaluate", advice)


def recompile(window: Window) -> Finding | None:
    """A run that was found compiling again and again; its start is left out."""
    advice = (
        "shapes that vary: torch.compile(dynamic=True), or pad to a few sizes",
        "TORCH_LOGS=recompiles,graph_breaks names the guards that failed",
    )
    return _held(window, "recompile", "compile", "recompilation takes", "compile", advice)


def optimizer(window: Window) -> Finding | None:
    """Without a GPU alone: with one, where the host is says nothing of how long its update takes
    there."""
    if window.gpu_present:
        return None
    advice = for_this_optimizer(window)
    told = "are in the optimizer"
    return _held(window, "optimizer", "optimizer", "the optimizer takes", told, advice)


def _held(
    window: Window, kind: Kind, phase: str, what: str, told: str, advice: tuple[str, ...]
) -> Finding | None:
    known = sampled_of(window)
    share = known.share(phase)
    if share.mean < thresholds.CONTRIBUTOR:
        return None
    headline = f"{what} {about(share.mean)} of the time"
    return bound(kind, None, share, headline, (counted(known, share, told),), advice)


# Which rules judge a run without a probe: those whose signals are there. The others abstain.

SAMPLED_CAUSES: Final[dict[Kind, Rule]] = {
    "input": input_bound,
    "sync": sync,
    "host": host,
    "optimizer": optimizer,
    "checkpoint": checkpoint,
    "evaluation": evaluation,
    "recompile": recompile,
    "contention": contention,
    "throttled": throttled,
}
