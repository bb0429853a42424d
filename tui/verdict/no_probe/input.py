"""Input rules on stack samples, how samples are worded, and what the GPU hides of host time."""

from dataclasses import replace
from typing import Final

from ..code_origin import LOADERS
from ..code_places import share_held, share_where, worker_places
from ..findings import Evidence, Finding, Forecast
from ..forecast.interval import interval_of, with_interval
from ..format import cores, percent
from ..loader import Feeding, ran_at_most
from ..on_device import counted_by, idle_of
from ..place_names import path_of
from ..rules.input import workers_first
from ..rules.input_many_threads import cores_used, oversubscribed, own_cores_used, threaded
from ..rules.input_on_thread import without_loader
from ..rules.input_pattern import (
    SERIAL,
    Explained,
    best_of,
    cheaper,
    folded,
    gain,
    limited_by,
    named,
    split_stream,
    waiting,
    waiting_itself,
)
from ..scoring import cause, speedup_of
from ..stack_samples import Sampled
from ..statistics import Share
from ..thresholds import causes as limits
from ..thresholds.hysteresis import CONTRIBUTOR
from ..thresholds.samples import (
    LEAST_STACKS,
    SAMPLED_RESTARTS,
    SAMPLED_SERIAL,
    SAMPLED_STARTS_BUSY,
    SAMPLED_YOUNG_S,
)
from ..window import SampleWindow


def has_gpu_activity(window: SampleWindow) -> bool:
    """Whether GPU utilisation is known."""
    return window.activity is not None and window.activity.busy is not None


def gpu_exposed(window: SampleWindow, share: Share) -> Share:
    """At most the part of the time in which the GPU had nothing to do: while it works, what the
    host does costs nothing. Without a GPU, or a counter, all of it."""
    if not window.gpu_present or not has_gpu_activity(window):
        return share
    idle = idle_of(window)
    return Share(*(min(idle, part) for part in (share.mean, share.low, share.high)))


def idles(window: SampleWindow) -> tuple[Evidence, ...]:
    """The counter's word, where there is one."""
    if not window.gpu_present or window.activity is None or not has_gpu_activity(window):
        return ()
    idle = idle_of(window)
    text = f"the GPU is idle {percent(idle)} of the time"
    return (Evidence(text, counted_by(window.activity), idle),)


def about(share: float) -> str:
    """ "~57%"."""
    return percent(share) if 0 < share < 0.005 else f"~{percent(share)}"


def counted(sampled: Sampled, share: Share, what: str) -> Evidence:
    """ "57% of 190 samples (50% to 64%) wait for data"."""
    text = f"{percent(share.mean)} of {sampled.samples} samples ({percent(share.low)} to "
    text += f"{percent(share.high)}) {what}"
    return Evidence(text, "py-spy", share.mean)


STEP: Final = 1e9
"""Times are parts of a batch's, whatever that is."""


def input_bound(window: SampleWindow) -> Finding | None:
    """With a GPU only as much as it stood idle for."""
    sampled = window.sampled
    waits = sampled.share("data")
    share = gpu_exposed(window, waits)
    if share.mean < CONTRIBUTOR:
        return None
    why = _explained(window, share.mean)
    evidence = (counted(sampled, waits, "wait for data"), *idles(window), *why.evidence)
    headline = f"waiting for data takes {about(share.mean)} of the time"
    found = cause("input", why.sub, share, headline, evidence, why.advice)
    return replace(found, forecast=why.forecast) if why.forecast else with_interval(found)


def _explained(window: SampleWindow, share: float) -> Explained:
    """Who makes the batches, and what holds them up."""
    sampled = window.sampled
    if sampled.serial >= SAMPLED_SERIAL * sampled.share("data").mean:
        return _serial(window, share)
    if not _has_loader(window):  # children of its own are no workers of one
        fills = (own_cores_used(window) or 0.0) >= limits.WORKER_CPU_BOUND
        advice = (cheaper(None),) if fills else without_loader(sampled.loading)
        return Explained(None, named(folded(sampled.loading), "main-thread"), advice)
    if (found := _epoch_start(window, share)) is not None:
        return found
    fed = _fed(window, share)
    if fed is not None:
        for explanation in (waiting, threaded, oversubscribed):
            if (found := explanation(window, fed)) is not None:
                return found
        if fed.busy is not None:
            return _by_workers(window, fed, fed.busy)
    places = folded(worker_places(window))
    shown = named(places, "worker") or named(folded(sampled.loading), "main-thread")
    return Explained(None, shown, (cheaper(places[0] if places else None),))


def _has_loader(window: SampleWindow) -> bool:
    """The main thread waits in one, for most of what it waits for."""
    loading = window.sampled.loading
    within = share_where(loading, lambda one: path_of(one.frame).startswith(LOADERS))
    return within >= share_held(loading) / 2


IF_LONG: Final = " if making a batch takes much longer than the 1 to 2 ms of receiving one"
"""Steps too short for samples to follow may be shorter than what a worker's batch takes on its way:
a table of 16 numbers a row was 0.3 to 0.5x as fast with a worker, of which 1.4x was forecast."""


def _serial(window: SampleWindow, share: float) -> Explained:
    places, own = folded(window.sampled.loading), _own(window, share)
    if (why := waiting_itself(window, own, places)) is not None:
        return replace(why, forecast=_received(own, why.forecast))
    place = places[0] if places else None
    evidence = (Evidence(SERIAL, "py-spy", 0.0, "workers"), *named(places, "main-thread"))
    plan, forecast = own.plan(), None
    advice = [cheaper(place)]
    if plan is not None and window.cores != 1:
        first, known = workers_first(own, plan), best_of(own, plan.batch_ns)
        more = f"num_workers 0 → {plan.workers}, {gain(own, plan.batch_ns)}"
        if own.on_cpu and window.sampled.period_ns is None:
            more, known = more + IF_LONG, Forecast(known.speedup, 1.0, known.speedup)
        more += limited_by(own, plan.wanted) + split_stream(window)
        if not first and own.fills_cores:
            more = f"workers will not help: batches and training need the {cores(own.cores or 1)}"
        advice.insert(0 if first else 1, more)
        forecast = known if first else None
    return Explained("serial", evidence, tuple(advice), forecast=forecast)


def _received(own: Feeding, known: Forecast | None) -> Forecast | None:
    """Without a clock nobody knows what receiving a batch takes, which no worker spares: at the
    least half as many would give as much (batches of 10 ms on two cores: four workers 4.1x, eight
    3.9x, of which 8.9x is said)."""
    plan = own.plan(limits.STORAGE_WORKERS_PER_CORE)
    if known is None or plan is None:
        return known
    half = best_of(own, own.with_workers(max(1, plan.workers // 2)))
    return replace(known, low=min(known.low, half.low))


def _own(window: SampleWindow, share: float) -> Feeding:
    """The training process as its own loader: a batch costs what its thread ran, at the most. In ns
    where samples know how long a step takes."""
    batch_ns = window.sampled.period_ns or STEP
    make = min(share, ran_at_most(window))
    used = 1.0
    if window.host.main_cpu_percent is not None:
        used = max(0.0, window.host.main_cpu_percent / 100 - make)
    waited, costs, on_cpu = share * batch_ns, make * batch_ns, not window.gpu_present
    return Feeding(
        0, batch_ns, waited, None, waited, costs, used * batch_ns, window.cores, on_cpu=on_cpu
    )


def _epoch_start(window: SampleWindow, share: float) -> Explained | None:
    """All workers are young, and earlier ones have ended; and most of the time they make no batch:
    those that make them all the time are late by that, however young they are."""
    use, busy = window.workers, _busy(window)
    if use is None or use.oldest_s > SAMPLED_YOUNG_S:
        return None
    if use.exited < SAMPLED_RESTARTS * use.count:
        return None
    if busy is not None and window.stacks is not None:
        begun = window.stacks.worker_samples
        busy *= begun / (begun + window.stacks.workers_starting)
    if (busy or 0.0) > SAMPLED_STARTS_BUSY:
        return None
    text = f"{use.exited} workers came and went within a minute, {use.count} at a time"
    advice = (
        "persistent_workers=True: the workers are restarted for every epoch",
        "longer epochs: a sampler that repeats the data",
    )
    evidence = (Evidence(text, "proc", use.exited, "workers"),)
    gives = None if busy is None else interval_of("input", speedup_of(share * (1 - busy)))
    return Explained("epoch-start", evidence, advice, forecast=gives)


def _busy(window: SampleWindow) -> float | None:
    """Part of the workers' samples in which they make a batch; None of too few."""
    stacks = window.stacks
    if stacks is None or stacks.worker_samples < LEAST_STACKS or stacks.worker_idle_share is None:
        return None
    return 1 - stacks.worker_idle_share


def _fed(window: SampleWindow, share: float) -> Feeding | None:
    """The loader without the cost of a batch, which is not timed; None without workers."""
    use, busy = window.workers, _busy(window)
    if use is None:
        return None
    main = (window.host.main_cpu_percent or 0.0) / 100 * STEP
    return Feeding(use.count, STEP, share * STEP, busy, None, None, main, window.cores)


def _by_workers(window: SampleWindow, fed: Feeding, busy: float) -> Explained:
    """More workers, or none would help: as the cores allow."""
    workers, use, places = fed.workers or 1, window.workers, folded(worker_places(window))
    used = use.cpu_percent / 100 if use is not None and use.cpu_percent is not None else busy
    make = workers * busy * STEP
    costs = Feeding(
        workers,
        STEP,
        fed.wait_ns,
        busy,
        make,
        min(make, workers * used * STEP),
        fed.main_cpu_ns,
        window.cores,
    )
    plan = costs.plan()
    text = f"{workers} worker{'s' if workers > 1 else ''} busy {percent(busy)} of the "
    text += "time"
    if use is not None and use.cpu_percent is not None:
        text += f", each using {use.cpu_percent:.0f}% of a core"
        text += f", of {cores(window.cores)}" if window.cores else ""
    evidence = (Evidence(text, "py-spy", busy), *named(places, "worker"))
    less = cheaper(places[0] if places else None)
    if plan is None or plan.workers <= workers or plan.batch_ns >= STEP * (1 - limits.WORTH_DOING):
        full = (cores_used(window) or 0.0) >= limits.WORKER_CPU_BOUND
        wont = "more workers will not help"
        if full:
            wont += ": the cores are full"
        return Explained("cpu-bound" if full else None, evidence, (less, wont))
    more = f"num_workers {workers} → {plan.workers}, {gain(costs, plan.batch_ns)}"
    more += limited_by(costs, plan.wanted) + split_stream(window)
    return Explained("workers", evidence, (more, less), forecast=best_of(costs, plan.batch_ns))
