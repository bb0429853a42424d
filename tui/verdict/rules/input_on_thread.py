"""Batches that are no worker's: indices that the training thread draws itself, what the thread that
pins has to receive, and those of a loop without a loader."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..code_places import (
    ARRAYS,
    at_own_line,
    calls,
    copies_to_gpu,
    fetches,
    main_places,
    share_seen,
)
from ..cpu_wait import seen_before_the_net
from ..findings import Evidence, Finding, Forecast
from ..forecast.gain import gain_on_the_host, gain_without
from ..forecast.interval import INPUT_ERROR_ON_CPU, alone_on_cpu
from ..format import cores, ms, percent
from ..idle_ledger import idle_ledger
from ..loader import Feeding
from ..place_names import by_user_function, own_frame, path_of, place_evidence, place_name
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
from ..statistics import Share, at_most
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE, LEAST_LEFT
from ..window import StepWindow
from .input_pattern import Explained, cheaper, named

SAMPLER: Final = re.compile("[sS]ampler")
LOOP: Final = re.compile(r"^\s*(async )?for\b")
"""It may be the loop over the loader."""
MOST_OF_WAIT: Final = 0.5
"""Of the wait for data, from which it is most of it."""
INSTEAD: Final = (
    "draw indices cheaper: look up once what stays the same (the samples of each class), or draw "
    "those of an epoch at once"
)
MORE_MAKERS: Final = "more threads, or processes, that make batches ahead"
CHEAPER_BATCHES: Final = "cheaper batches in the processes that make them"
MADE_AHEAD: Final = re.compile(
    r"\.(get|result|recv\w*|imap\w*)\(|\bas_completed\(|\b(pool|executor|workers)\.\w*map\("
)
"""A line that waits for what another thread, or process, makes ahead."""
TIRELESS_PERCENT: Final = 95.0
"""Of a core. A process that hands its batches to a queue waits while that is full: one that never
does is late, or the queue has room still (SASRec's sampler, three at 99 to 101 % of a core: twelve
gave 1.42x on an H200)."""
THREADS_PERCENT: Final = 110.0
"""More than one thread reaches: what several do, as a renderer's, is not known to be batches."""
SEEN_S: Final = 3.0
WORKERS_REST: Final = 0.3
"""Of the time, that workers compute at the most where a thread is behind them."""
MOST_COUNTED: Final = 64
"""Tensors of a batch that the probe counts."""
TENSOR_NS: Final = 140_000.0
"""Each is a file of its own between two processes: to receive 257 and pin them took 36 ms of a
thread's time on an H200."""


def drawn_here(window: StepWindow, feeding: Feeding) -> Explained | None:
    """Indices come from a sampler that runs on the training thread, between two batches: no worker
    takes that over (a sampler of classes that scans all labels took 70 % of a step's samples, 2.5x
    by an index of them; "11 ms to receive from a worker" was said)."""
    seen = share_seen(window, lambda one: _draws(one, feeding))
    waited = feeding.wait_ns / max(1.0, feeding.wait_ns + feeding.other_ns)
    if not seen.mean or seen.mean < MOST_OF_WAIT * waited:
        return None
    places = by_user_function(one for one in main_places(window) if _draws(one, feeding))
    advice = f"{INSTEAD} ({place_name(places[0])})"
    evidence = named(places, "main-thread")
    return Explained("sampler", evidence, (advice,), forecast=_forecast(window, seen))


def _draws(place: FrameShare, feeding: Feeding) -> bool:
    """With workers all that the training thread does for a batch, and is not receiving it; without
    any that is the batch as well, and names tell."""
    if place.phase != "data" or "/fetch.py" in place.frame:
        return False
    if SAMPLER.search(place.frame) or SAMPLER.search(place.caller or ""):
        return True
    own = own_frame(place)
    if not feeding.workers or own is None or LOOP.search(place.line) or copies_to_gpu(place):
        return False
    return at_own_line(place) or path_of(place.frame).startswith(ARRAYS)


def _forecast(window: StepWindow, seen: Share) -> Forecast | None:
    if window.gpu_present:
        return None
    speedup = speedup_of(seen.mean)
    return alone_on_cpu("input", speedup, seen.mean, seen.low, seen.high, INPUT_ERROR_ON_CPU)


def tireless(window: StepWindow) -> list[float]:
    """Processes that the program started, without a loader, that never wait: the CPU of each, in
    percent of a core."""
    used = window.workers
    if window.loaders or used is None or used.oldest_s < SEEN_S or used.exited:
        return []
    if any(mean > THREADS_PERCENT for _, mean in used.cpu_each):
        return []
    return [mean for least, mean in used.cpu_each if least >= TIRELESS_PERCENT]


def _of_more_makers(window: StepWindow, found: Finding) -> Finding:
    """Where each of the processes that make batches computes all the time, more of them give no
    more than there are cores for: of eight actors on 16 cores (MonoBeast beside an H200, ">10x")
    sixteen gave 1.0 and 1.7x, and 2.1x with cheaper steps. Where no core is left these come
    first, and give what they give."""
    makers, have = tireless(window), window.cores
    if not makers or not have or found.speedup is None:
        return found
    used, main = sum(makers) / 100, (window.host.main_cpu_percent or 0.0) / 100
    most = min(found.speedup, max(1.0, (have - main) / used))
    text = f"{len(makers)} processes that it started use {100 * used / len(makers):.0f}% of a core "
    text += f"each, of {cores(have)}"
    evidence = (*found.evidence, Evidence(text, "proc", used, "cores"))
    if most < speedup_of(ENTER_SHARE):
        advice = (CHEAPER_BATCHES, *found.advice[1:])
        return replace(found, evidence=evidence, advice=advice)
    advice = (found.advice[0], CHEAPER_BATCHES)
    return replace(found, evidence=evidence, advice=advice, forecast=Forecast(most, 1.0, most))


def without_loader(fetching: Sequence[FrameShare]) -> tuple[str, str]:
    """What to do about batches that a loop fetches there itself."""
    place = by_user_function(fetching)[0]
    if calls(max(fetching, key=lambda one: one.share), MADE_AHEAD):
        return (
            f"{MORE_MAKERS}: none is ready ({place.frame})",
            "or a DataLoader, whose workers do",
        )
    return (
        cheaper(place),
        f"fetch the next batch on another thread, or through a DataLoader: {place.frame}",
    )


def pinned_late(window: StepWindow, feeding: Feeding) -> Explained | None:
    """Workers rest, and the one thread that receives what they made and pins it is late: each
    tensor of a batch is handed over by itself. It runs Python, so that it also keeps the training
    thread from running its own for part of that time; how much nobody measured here (256 tensors of
    a jet's particles a batch, 62 % of a step waited for: 4.7x by one padded tensor)."""
    loader, pins, busy = (window.loaders or (None,))[0], window.host.pin_cpu, feeding.busy
    if loader is None or not loader.pin_memory or not pins:
        return None
    if busy is None or busy > WORKERS_REST:
        return None
    each_ns, tensors = pins * feeding.batch_ns, loader.batch_tensors or 0
    if each_ns < MOST_OF_WAIT * feeding.wait_ns:
        return None
    if tensors < MOST_COUNTED and tensors * TENSOR_NS < MOST_OF_WAIT * each_ns:
        return None
    many = f"{tensors}" if tensors < MOST_COUNTED else f"{tensors} or more"
    text = f"the thread that pins batches uses {percent(pins)} of a core, {ms(each_ns)} for each: "
    text += f"it receives {many} tensors, while workers are busy {percent(busy)}"
    waited = feeding.wait_ns / max(1.0, feeding.wait_ns + feeding.other_ns)
    activity = window.activity
    works = (0.0 if activity is None else activity.busy or 0.0) / 100
    forecast = Forecast(
        1.0 / max(LEAST_LEFT, works, (1.0 - waited) * (1.0 - pins / 2)),
        speedup_of(MOST_OF_WAIT * waited),
        1.0 / max(LEAST_LEFT, works, (1.0 - waited) * (1.0 - pins)),
    )
    fewer = "few tensors in a batch: a collate_fn that pads and stacks them, since each is handed "
    fewer += "over by itself"
    return Explained("received", (Evidence(text, "proc", pins),), (fewer,), forecast=forecast)


def unmarked(window: StepWindow) -> Finding | None:
    """A loop without a loader, in which no fetch is marked: by the samples in functions of the
    user's own that fetch, as far as a GPU idles then."""
    seen, ledger = seen_before_the_net(window, fetches), idle_ledger(window)
    share = seen if ledger is None else at_most(seen, ledger.shares["input"])
    if share.low < CONTRIBUTOR or (window.gpu_present and ledger is None):
        return None
    fetching = [place for place in main_places(window) if fetches(place)]
    place = by_user_function(fetching)[0]
    found = cause(
        "input",
        "serial",
        share,
        f"fetching a batch takes {percent(share.mean)} of the time",
        (place_evidence(place, "main-thread"),),
        without_loader(fetching),
        gain=gain_without("input", window) or gain_on_the_host(window, share.mean),
    )
    if not window.gpu_present and found.speedup is not None:
        shares = share.mean, share.low, share.high
        forecast = alone_on_cpu("input", found.speedup, *shares, INPUT_ERROR_ON_CPU)
        found = replace(found, forecast=forecast)
    return _of_more_makers(window, found) if found.advice[0].startswith(MORE_MAKERS) else found
