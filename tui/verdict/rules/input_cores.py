"""The loader's workers keep up, on the cores that the training needs."""

from dataclasses import replace
from typing import Final

from ..code_places import worker_places
from ..cpu_wait import (
    core_account,
    fewer_workers,
    taken_of_threads,
    thread_advice,
    without_a_core,
)
from ..findings import Evidence, Finding, Forecast
from ..forecast.interval import CORES_ERROR_ON_CPU, alone_on_cpu
from ..format import cores, percent
from ..loader import Feeding
from ..pauses import starts_of_workers
from ..scoring import cause, speedup_of
from ..statistics import Share
from ..step_time import spent
from ..thresholds import causes as limits
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow
from .input_pattern import cheaper, folded, named, without_any

LIKELY_OF_THREADS: Final = 0.6
LEAST_OF_THREADS: Final = 0.25
"""What batches that cost nothing gave back, of what the net's threads may lose to the workers: 0 to
0.3 of it in five public scripts (C3D, FixMatch, RotatE, ShuffleNet, TransUNet), 0.5 and 0.8 in two
(a Bayesian net, a meta-learning LSTM), all of it in generated runs."""
STARTS_LEAD: Final = 0.5
"""Workers that stay are the first advice where starting them is so much of what is lost: of 8 of
19 % in a world model (C-SWM on two cores) they gave nothing, for an epoch's first batches are made
all the same, and cheap batches 1.8x."""


def crowded_out(window: StepWindow, fed: Feeding, wait: Share, taken: float) -> Finding:
    """On few cores what a batch costs is lost to the step whoever makes it, `taken` of the time
    beside the wait. At best the training has the cores to itself."""
    by_threads = taken_of_threads(window) >= taken
    # What threads of the net lose beside a worker is that at the most.
    likely, least = (LIKELY_OF_THREADS, LEAST_OF_THREADS) if by_threads else (1.0, 1.0)
    parts = wait.mean + likely * taken, wait.low + least * taken, wait.high + taken
    share = Share(*(min(1.0, part) for part in parts))
    places = folded(worker_places(window))
    account = core_account(window)
    evidence = [_held_up(window, by_threads), *([account] if account is not None else [])]
    apart = thread_advice(window)
    advice = [cheaper(places[0] if places else None), *apart]
    # As many batches cost as much in fewer workers: those only leave a thread of the net alone.
    fewer = None if by_threads else fewer_workers(window)
    loader = window.loaders[0] if window.loaders else None
    if loader is not None and not loader.persistent_workers and _restarts(window):
        starts = sum(starts_of_workers(window)) / max(1, spent(window.steps).wall_ns)
        text = "persistent_workers=True: starting workers takes cores as well"
        advice.insert(0 if starts >= STARTS_LEAD * share.mean else 1, text)
    none = without_any(window, fed)
    if none is not None:
        advice.insert(0 if none.is_most else 1, none.advice)
    elif fewer is not None:
        advice.insert(0, fewer)
    found = cause(
        "input",
        "cores",
        share,
        _headline(wait.mean, taken),
        (*evidence, *named(places, "worker")),
        tuple(advice),
    )
    if none is not None and none.is_most:
        return replace(found, forecast=none.forecast)
    gives = speedup_of(share.mean)
    if by_threads:
        shares = share.mean, share.low, share.high
        alone = alone_on_cpu("input", gives, *shares, CORES_ERROR_ON_CPU)
        # What more the threads lose by waiting for each other nobody measures.
        return replace(found, forecast=replace(alone, high=None if apart else alone.high))
    used = (window.host.main_cpu_percent or 0.0) / 100 / (window.cores or 1.0)
    most = max(gives, speedup_of(1.0 - used)) if used else gives
    return replace(found, forecast=Forecast(gives, 1.0, most))


def _headline(wait: float, taken: float) -> str:
    """Both parts, where the wait is one to mention."""
    if wait < CONTRIBUTOR:
        return f"the loader's workers take the training's cores {percent(taken)} of the time"
    late = f"waiting for data takes {percent(wait)} of the time"
    return f"{late}, and workers that take the training's cores {percent(taken)}"


def _held_up(window: StepWindow, by_threads: bool) -> Evidence:
    """By what the training lacks a core."""
    if by_threads and window.settings is not None:
        text = (
            f"{window.settings.threads} threads of the net on {cores(window.cores or 1.0)}: while "
        )
        return Evidence(f"{text}a worker has one of these, the others wait", "proc")
    return without_a_core(window.host.run_delay or 0.0)


def _restarts(window: StepWindow) -> bool:
    return sum(row.startup_ns > 0 for row in window.steps) >= limits.RHYTHM_EVENTS
