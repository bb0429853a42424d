"""Beginning an epoch takes longer than its batches: workers start anew, or an iterator for each."""

from statistics import median
from typing import Final

from ...messages import Loader
from ..code_places import main_places, share_seen, worker_places
from ..exposed_wait import ends_its_workers, given_back, worker_ends
from ..findings import Evidence
from ..forecast.interval import INPUT_ERROR_ON_CPU, alone_on_cpu, at_least, interval_of
from ..format import ms, percent
from ..loader import Feeding
from ..on_device import on_device
from ..pauses import (
    epoch_parts,
    shared_starts,
    spacing_of,
    starts_of_workers,
)
from ..place_names import file_of, function_of, own_frame, place_evidence
from ..scoring import speedup_of
from ..stack_samples import FrameShare
from ..step_time import spent
from ..thresholds import causes as limits
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow
from .input_pattern import ALWAYS, Explained, cheaper, folded, named
from .page_faults import of_forks

MOST_OF_A_STEP: Final = 0.9
"""That starting workers may take of it, with what a fork costs beside."""


def epoch_start(window: StepWindow, feeding: Feeding) -> Explained | None:
    """More time goes to loader start-up than to waiting for the batches after it and giving them
    back; of short epochs a part of that is enough, for the batches after a start are late by it.
    More workers would make it worse."""
    parts, whole = starts_of_workers(window), epoch_parts(window)
    wall_ns = spent(window.steps).wall_ns
    waits = sum(row.data_ns for row in window.steps) + given_back(window).mean * wall_ns
    loader, device = window.loaders[0] if window.loaders else None, on_device(window)
    beside = begun_beside(window)
    if beside is not None:
        loader = beside
    if loader is None or not loader.num_workers:
        parts = _beyond_a_fetch(window, parts)
    starts = [part for part in parts if part > 0]
    taken_ns = sum(starts) + worker_ends(window).mean * wall_ns if whole is None else sum(whole)
    held = limits.STARTS_HOLD if is_short(loader, feeding) else 1.0
    if not starts or taken_ns <= held * waits:
        return None
    each_ns = sum(starts) / len(starts)
    evaluated = any(shared_starts(window))
    text = f"{ms(each_ns)} until the first batch of "
    text += "an epoch" if beside is None else _named(beside)
    if evaluated:
        text = f"{ms(each_ns)} of starting workers for an epoch and its evaluation"
    if whole is not None:
        beside_ns = taken_ns / len(starts) - each_ns
        text += f", and its first step takes {ms(beside_ns)} longer beside"
    begun = [row.number for row, part in zip(window.steps, parts, strict=True) if part > 0]
    if (spacing := spacing_of(begun)) is not None:
        text += ", in each step" if round(spacing) == 1 else f", every {spacing:.0f} steps"
    else:
        text += ", one so far" if len(begun) == 1 else f", {len(begun)} so far"
    evidence: tuple[Evidence, ...] = (Evidence(text, "hook", each_ns / 1e6, "ms"),)
    if loader is None or not loader.num_workers:
        advice: tuple[str, ...] = ("make the first batch of an epoch cheap: see what iter() does",)
    elif loader.persistent_workers:
        advice = (
            "the workers persist, so the first batch itself is late: see what the dataset does "
            "when an epoch begins",
        )
    elif beside is not None:
        other = _named(beside, "the other")
        advice = (
            f"persistent_workers=True for {other}: its workers are restarted by every iter()",
            "keep its iterator, and take next() of that: each start of it makes batches ahead that "
            "nobody takes",
        )
    else:
        theirs = " for the training's loader and the evaluation's" if evaluated else ""
        advice = (
            f"persistent_workers=True{theirs}: the workers are restarted for every epoch",
            "longer epochs: a sampler that repeats the data",
        )
    forecast, restarts = None, loader is not None and loader.restarts
    copied = of_forks(window) if whole is None and restarts else 0.0
    if copied >= CONTRIBUTOR:
        text = f"the kernel copies pages after each fork, {percent(copied)} of the time"
        evidence = (*evidence, Evidence(text, "proc", copied))
        goes = min(MOST_OF_A_STEP, taken_ns / wall_ns + copied)
        forecast = alone_on_cpu("input", speedup_of(goes), error=INPUT_ERROR_ON_CPU)
    elif whole is not None:
        # Waits for the batches after it stay.
        forecast = alone_on_cpu("input", speedup_of(taken_ns / wall_ns), error=INPUT_ERROR_ON_CPU)
    elif device is not None and feeding.workers and feeding.make_ns is not None:
        # Workers that stay make an epoch's first batch when it begins, too.
        stays_ns = len(starts) * min(each_ns, feeding.make_ns)
        if stays_ns > taken_ns / 2:
            return _of_slow_batches(window, feeding.make_ns, evidence, advice if restarts else ())
        if restarts:
            goes = device.exposed_share * (taken_ns - stays_ns) / wall_ns
            forecast = interval_of("input", speedup_of(goes))
    return Explained("epoch-start", evidence, advice, forecast=forecast)


def _of_slow_batches(
    window: StepWindow, make_ns: float, evidence: tuple[Evidence, ...], advice: tuple[str, ...]
) -> Explained:
    """Most of a start is making its first batch, which no other number of workers and none that
    stay make sooner (occupancy networks on an H200, epochs of 8 batches, 720 ms each: items that
    read less 3.5x, workers that stay 1.25x)."""
    places = folded(worker_places(window))
    text = f"one worker needs {ms(make_ns)} to make a batch"
    made = (Evidence(text, "hook", make_ns / 1e6, "ms"), *named(places, "worker"))
    first = cheaper(places[0] if places else None)
    return Explained("epoch-start", (*evidence, *made), (first, *advice))


def begun_beside(window: StepWindow) -> Loader | None:
    """The loader that is begun within the training's epoch: more starts than that has had epochs
    are another one's, as of a batch to test with that `next(enumerate(loader))` takes every 10
    steps (PointNet). A training may make its loader anew for each epoch."""
    starts = sum(row.startup_ns > 0 for row in window.steps)
    if not window.loaders:
        return None
    training = window.loaders[0]
    epochs = sum(one.iterations for one in window.loaders if _alike(one, training))
    begun = [one for one in window.loaders if one.iterations >= starts > epochs and one.restarts]
    return max(begun, key=lambda one: one.iterations, default=None)


def _alike(one: Loader, other: Loader) -> bool:
    """As far as their descriptions tell, of the same samples in the same batches."""
    return (one.dataset, one.batch_size, one.batches) == (
        other.dataset,
        other.batch_size,
        other.batches,
    )


def _named(loader: Loader, which: str = "another") -> str:
    """ "another loader (ShapeNetDataset, 90 batches)"."""
    about = [loader.dataset] if loader.dataset else []
    about += [] if loader.batches is None else [f"{loader.batches:,} batches"]
    return f"{which} loader ({', '.join(about)})" if about else f"{which} loader"


def begun_anew(window: StepWindow, feeding: Feeding) -> Explained | None:
    """Every batch is the first of a new iterator, as `next(iter(loader))` in the loop makes it:
    each shuffles the whole dataset, or starts the workers, for one batch. What an iterator's next
    batch would take is not seen then, so the gain is at least what samples show of beginning one,
    and of ending the workers of the one before: giving its batch back takes as well."""
    loader, rows = (window.loaders[0] if window.loaders else None), window.steps
    starts = sum(row.startup_ns > 0 for row in rows)
    waits_ns = sum(row.data_ns for row in rows)
    if loader is None or loader.batches == 1 or starts < limits.RHYTHM_EVENTS:
        return None
    fetches, of_starts_ns = sum(row.fetches for row in rows), sum(row.startup_ns for row in rows)
    if starts < ALWAYS * fetches or waits_ns > (1 - ALWAYS) * of_starts_ns:
        return None
    seen = share_seen(window, begins_iterator)
    if not loader.num_workers and seen.low < CONTRIBUTOR:
        return None  # its batches are what takes the time, and would of any iterator
    text = f"each of {fetches:,} batches is the first of a new iterator"
    if loader.batches is not None:
        text += f", which has {loader.batches:,}"
    begins = [place for place in main_places(window) if begins_iterator(place)]
    goes = share_seen(window, begins_or_ends) if loader.num_workers else seen
    own = [where for place in begins if (where := own_frame(place))]
    at = f" ({own[0]})" if own else ""
    advice = (
        f"make the iterator once and take all its batches: next(iter(loader)) in the loop{at} "
        "begins an epoch for every batch",
    )
    forecast = at_least(speedup_of(goes.low)) if goes.mean > 0 else None
    evidence = (
        Evidence(text, "hook", float(fetches)),
        *(place_evidence(place, "main-thread") for place in begins[:1]),
    )
    return Explained("epoch-start", evidence, advice, forecast=forecast)


def begins_or_ends(place: FrameShare) -> bool:
    """An iterator of a loader is begun there, or the workers of the one before are ended."""
    return begins_iterator(place) or ends_its_workers(place)


def begins_iterator(place: FrameShare) -> bool:
    """An iterator of a loader is begun there: indices are drawn, or workers are started."""
    if place.phase != "data":
        return False
    made = function_of(place.frame) in ("__init__", "_launch", "start")
    return file_of(place.frame) == "sampler.py" or (
        made and file_of(place.frame) in ("dataloader.py", "popen_fork.py", "process.py")
    )


def is_short(loader: Loader | None, feeding: Feeding) -> bool:
    """An epoch is so short that starting and ending workers is a part of it that matters."""
    batches = None if loader is None else loader.batches
    return batches is not None and batches * feeding.batch_ns < limits.SHORT_EPOCH_NS


def _beyond_a_fetch(window: StepWindow, parts: list[int]) -> list[int]:
    """Without workers a first batch is made like any other: what a start takes more than that.
    A loop that begins an epoch in every step (`next(iter(loader))`) has no other."""
    fetches = [row.data_ns / row.fetches for row in window.steps if row.data_ns and row.fetches]
    if len(fetches) < len(parts) / 2:
        return []
    usual = median(fetches)
    return [max(0, round(part - usual)) for part in parts]
