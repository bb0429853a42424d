"""Rules on stack samples: host causes, too few samples, nothing wrong."""

import re
from dataclasses import replace
from typing import Final

from ..code_places import (
    CLIP_CALL,
    EMPTYING_CALL,
    clips,
    empties_cache,
    in_collective,
    in_optimizer,
    is_users,
    main_places,
    share_held,
    share_where,
)
from ..findings import Evidence, Finding, Kind, Signal, find_missing
from ..forecast.interval import interval_of, with_interval
from ..format import percent
from ..on_device import counted_by, idle_of
from ..place_names import by_user_function, call_at, place_evidence, place_name
from ..rules.evaluation import ADVICE, HEADLINES
from ..rules.gpu_filling import KINDS_OF_WORK
from ..rules.gpu_work import products_seen, work_of
from ..rules.optimizer import for_this_optimizer, updated_together
from ..rules.page_faults import page_faults
from ..scoring import cause, held_by, speedup_of, state
from ..stack_samples import FrameShare, Sampled
from ..statistics import Share, of_samples, without_rows
from ..thresholds import samples as limits
from ..thresholds.causes import MOST_OF_IT
from ..thresholds.gpu import GPU_BUSY
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE
from ..unmarked_evaluation import what_evaluates
from ..window import SampleWindow
from .input import about, counted, gpu_exposed, has_gpu_activity, idles

WITHOUT: Final[tuple[tuple[Signal, str], ...]] = (
    ("torch", "no torch in it"),
    ("stacks", "its stacks are not sampled"),
)
"""Signals without which there will be no verdict."""


def too_early(window: SampleWindow) -> Finding | None:
    """Until there are samples enough; or why there will be none."""
    have = window.sampled.samples
    if have >= limits.SAMPLED_LEAST:
        return None
    for signal, why in WITHOUT:
        if (missing := find_missing(window.missing, signal)) is not None:
            evidence = (Evidence(missing.reason, "proc"),)
            return state("incomplete", signal, "info", f"no verdict: {why}", evidence)
    if not have:
        return _waits_for_a_thread(window) or _not_begun(window)
    return state("warming-up", None, "info", f"{have} of {limits.SAMPLED_LEAST} samples")


def _waits_for_a_thread(window: SampleWindow) -> Finding | None:
    """Samples are of the main thread, which waits for another, or for processes, that may train."""
    stacks = window.stacks
    if stacks is None or stacks.main_samples < limits.SAMPLED_LEAST:
        return None
    if stacks.main_waits < MOST_OF_IT:
        return None
    headline = "the main thread waits for another thread, or a process, which may train"
    evidence = tuple(place_evidence(place, "main-thread") for place in stacks.main[:1])
    advice = (
        "a thread: only the probe sees it (gpuwatch attach --inject, or gpuwatch run)",
        "a process: gpuwatch attach to that one",
    )
    return state("incomplete", "thread", "info", headline, evidence, advice)


def _not_begun(window: SampleWindow) -> Finding:
    """Nothing shows a training. What solves equations, or counts words, may be none, or one by
    hand."""
    stacks, headline = window.stacks, "no sample of the training yet"
    evidence: tuple[Evidence, ...] = ()
    if stacks is not None and stacks.main_samples >= limits.SAMPLED_LEAST:
        headline = f"no net, loader or backward in {stacks.main_samples} samples"
        evidence = (place_evidence(by_user_function(stacks.main)[0], "main-thread"),)
    return state("warming-up", None, "info", headline, evidence)


def _beside_the_net(window: SampleWindow) -> list[FrameShare]:
    """Tensors that lines of the user's own compute in no net: batches that are made so, a loss of
    their own. None where no net was seen: then they may be it."""
    places = main_places(window)
    if not any(one.in_net for one in places):
        return []
    return [one for one in places if one.phase == "forward" and not one.in_net and is_users(one)]


def no_cause(window: SampleWindow) -> Finding:
    """With a GPU, what its counters show it busy with, or that it idles for an unknown reason."""
    beside = _beside_the_net(window)
    held, mine = share_held(beside), by_user_function(beside)
    compute = sum(window.sampled.share(one).mean for one in ("forward", "backward"))
    compute = max(0.0, compute - held)
    waits = window.sampled.share("data").mean
    apart = (place_evidence(mine[0], "main-thread"),) if held >= CONTRIBUTOR else ()
    seen = (
        *apart,
        Evidence(
            f"{percent(compute)} of the samples are in forward and backward", "py-spy", compute
        ),
        Evidence(f"{percent(waits)} wait for data", "py-spy", waits),
    )
    least = percent(ENTER_SHARE)
    if not window.gpu_present:
        headline = f"no cause above {least} of the samples"
        if compute >= MOST_OF_IT:
            headline += ": forward and backward are the limit"
        elif held > compute:
            headline += f": what is computed beside the net is the limit, {place_name(mine[0])}"
        return state("healthy", None, "info", headline, seen)
    activity = window.activity
    if activity is None or not has_gpu_activity(window):
        headline = "GPU utilisation is unknown"
        return state("incomplete", "gpu", "info", headline, seen)
    idle = idle_of(window)
    text = f"the GPU is busy {percent(1 - idle)} of the time"
    busy = Evidence(text, counted_by(activity), 1 - idle)
    if idle >= 1 - GPU_BUSY:
        headline = f"GPU idle {about(idle)} of the time while the host launches work"
        lacks = "with the probe"
        if find_missing(window.missing, "probe") is None:
            lacks = "with more of its long steps"
        advice = (f"{lacks}, GPU timing separates launches from other waits",)
        return state("incomplete", "clock", "info", headline, (busy, *seen), advice)
    work = work_of(activity, None, products_seen(window))
    found = next((one for kind in KINDS_OF_WORK if work and (one := kind(work))), None)
    if found is not None:
        return found
    return state("compute", None, "info", "the GPU is the limit", (busy, *seen))


def host(window: SampleWindow) -> Finding | None:
    """Python between the phases, or a wait for others that run meanwhile: which holds more."""
    found = filter(None, (_python(window), _waits(window)))
    return max(found, key=held_by, default=None)


_OTHERS: Final = "another thread, a process or a server"


def _waits(window: SampleWindow) -> Finding | None:
    """For what is no batch: a save on another thread, a process, a server. No Python of its own,
    and what those take nobody knows."""
    known = window.sampled
    waits = known.share("waiting")
    if window.gpu_present and not has_gpu_activity(window):
        return None
    share = gpu_exposed(window, waits)
    if share.mean < CONTRIBUTOR or _for_ranks(known):
        return None
    mine = by_user_function(known.waiting)[0]
    evidence = (
        counted(known, waits, f"wait for {_OTHERS}"),
        place_evidence(mine, "main-thread"),
        *idles(window),
    )
    advice = (f"wait as late as its result is needed, or for less of it: {place_name(mine)}",)
    headline = f"waits for {_OTHERS} take {about(share.mean)} of the time"
    return cause("host", "waits", share, headline, evidence, advice)


def communication(window: SampleWindow) -> Finding | None:
    """Without a GPU: calls that wait for other ranks. How much of it the slowest of them takes, and
    how much the transfer, the stacks of one rank do not show."""
    known = window.sampled
    share = known.share("waiting")
    if share.mean < CONTRIBUTOR or not _for_ranks(known):
        return None
    mine = next(filter(in_collective, known.waiting))
    evidence = (counted(known, share, "wait for other ranks"), place_evidence(mine, "main-thread"))
    advice = (
        "see what the rank that waits least does meanwhile (gpuwatch attach): all wait for it",
        f"fewer and larger calls, as DistributedDataParallel's: {place_name(mine)}",
    )
    headline = f"waits for other ranks take {about(share.mean)} of the time"
    return cause("communication", "waiting", share, headline, evidence, advice)


def _for_ranks(known: Sampled) -> bool:
    """Most waits are for other ranks."""
    return share_where(known.waiting, in_collective) > share_held(known.waiting) / 2


def _python(window: SampleWindow) -> Finding | None:
    """With a GPU only as much as it stood idle for; abstains without such a counter."""
    known = window.sampled
    own = known.share("other")
    if window.gpu_present and not has_gpu_activity(window):
        return None
    emptied = share_where(known.host, empties_cache) if window.gpu_present else 0.0
    own = Share(*(max(0.0, part - emptied) for part in _ends(own)))
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
    return with_interval(cause("host", None, share, headline, evidence, tuple(advice)))


def allocator(window: SampleWindow) -> Finding | None:
    """Samples on lines that empty the cache, as far as the GPU stood idle for."""
    if not window.gpu_present:
        return page_faults(window)
    if not has_gpu_activity(window):
        return None
    emptied = [place for place in window.sampled.host if empties_cache(place)]
    seen = of_samples(share_where(emptied, empties_cache), window.sampled.samples)
    share = gpu_exposed(window, seen)
    if share.low < CONTRIBUTOR:
        return None
    evidence = (counted(window.sampled, seen, "empty the allocator's cache"), *idles(window))
    advice = f"take {call_at(emptied[0], EMPTYING_CALL)} out of the loop: PyTorch reuses its memory"
    headline = f"emptying the allocator's cache takes {about(share.mean)} of the time"
    return cause("allocator", None, share, headline, evidence, (advice,))


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
    return with_interval(cause("sync", None, without_rows(mean), headline, evidence, advice))


def _ends(share: Share) -> tuple[float, float, float]:
    return share.mean, share.low, share.high


def checkpoint(window: SampleWindow) -> Finding | None:
    """While it writes, nothing trains, on the host or on the GPU."""
    advice = (
        "save less often",
        "copy the state and write it on another thread (torch.distributed.checkpoint.async_save)",
    )
    return _held(window, "checkpoint", "checkpoint", "checkpoints take", "are in a save", advice)


def evaluation(window: SampleWindow) -> Finding | None:
    """Whether it is worth its time is the user's decision. What a training learns from, as what its
    agent does in its environment, cannot go."""
    what = what_evaluates(window)
    if what != "evaluation":
        clause = "act in an environment" if what == "rollout" else "generate what is trained on"
        found = _held(window, "evaluation", "evaluation", HEADLINES[what], clause, ADVICE[what])
        return found and replace(found, sub="rollout", speedup_is="bound", forecast=None)
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


ONE_BY_ONE: Final = re.compile(r"\bclip_grad_(norm|value)_\((p|par|param|parameter|w|weight),")
ONCE: Final = "clip the gradients of all parameters in one call, not of each by itself"


def optimizer(window: SampleWindow) -> Finding | None:
    """Without a GPU alone: with one, where the host is says nothing of how long its update takes
    there. Of clipping, which is a part of it, the update's own form changes nothing."""
    share = window.sampled.share("optimizer")
    if window.gpu_present or share.mean < CONTRIBUTOR:
        return None
    held = [one for one in main_places(window) if one.phase == "optimizer"]
    cut = [one for one in held if _clips(one)]
    left = 1.0 - share_held(cut) / share_held(held) if cut else 1.0
    own = Share(*(left * end for end in _ends(share)))
    together, advice = updated_together(window), for_this_optimizer(window)
    if own.mean < CONTRIBUTOR:
        advice = tuple(one for one in advice if one != together)
    evidence = [counted(window.sampled, share, "are in the optimizer")]
    if cut:
        evidence.append(place_evidence(by_user_function(cut)[0], "main-thread"))
    if any(ONE_BY_ONE.search(one.line) for one in cut):
        advice = (ONCE, *advice)
    headline = f"the optimizer takes {about(share.mean)} of the time"
    found = cause("optimizer", None, share, headline, tuple(evidence), advice)
    if not advice or advice[0] != together:
        return found  # what less clipping, or fewer updates, give is not known
    gives = interval_of("optimizer", speedup_of(own.mean), *_ends(own))
    return replace(found, forecast=gives)


def _clips(place: FrameShare) -> bool:
    """Also in what it calls of PyTorch's."""
    return clips(place) or (not in_optimizer(place) and bool(CLIP_CALL.search(place.line)))


def _held(
    window: SampleWindow, kind: Kind, phase: str, what: str, clause: str, advice: tuple[str, ...]
) -> Finding | None:
    known = window.sampled
    share = known.share(phase)
    if share.mean < CONTRIBUTOR:
        return None
    headline = f"{what} {about(share.mean)} of the time"
    found = cause(kind, None, share, headline, (counted(known, share, clause),), advice)
    return with_interval(found)
