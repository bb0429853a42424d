"""Memory that grows or fragments: the rules, and what makes it grow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from typing import Final

from ..allocations import WarmCounts, is_full
from ..findings import Evidence, Finding, Note
from ..format import percent, size
from ..memory.growth import Growth, onset
from ..memory.trends import (
    STARTED,
    WORKERS,
    Exhaustion,
    MemoryPlace,
    exhaustion,
    has_workers,
    readings,
    time_left,
)
from ..scoring import state
from ..statistics import theil_sen
from ..thresholds import memory as limits
from ..thresholds.causes import EVENTS_IN_WINDOW
from ..thresholds.gpu import GIVEN_BACK
from ..window import MemoryUnit, RunEvent, RunFacts, Window

WHERE: Final = {
    "evaluation": "look at what the evaluation keeps: run it under torch.inference_mode(), and "
    "append .item() or .cpu() results, not the outputs",
    "checkpoint": "look at what saving a checkpoint keeps: copies of state_dict() that are never "
    "freed",
    "epoch": "look at what each epoch creates and keeps: loaders, iterators, lists of an epoch's "
    "results",
}

RECORD = (
    "to find the lines that hold it: torch.cuda.memory._record_memory_history(), then after three "
    "steps torch.cuda.memory._dump_snapshot()"
)
"""Not by itself: it costs a stack an allocation."""

PLURAL: Final = {"evaluation": "evaluations", "checkpoint": "checkpoints", "epoch": "new epochs"}


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely one."""

    evidence: Evidence | None
    advice: tuple[str, ...]


def cause_of(place: MemoryPlace, grown: Growth, window: RunFacts) -> Cause:
    """The first that shows itself; else what it most often is."""
    if place.points and place.whose == WORKERS:
        return _of_workers(window)
    if place.points and place.whose == STARTED:
        return _of_processes(window)
    event = _at_events(place, grown, window.moments)
    if event is not None:
        return event
    if place.kind != "GPU":
        return _of_the_process(window)
    cause = _of_tensors(grown, window)
    return replace(cause, advice=(*cause.advice, RECORD))


def _at_events(place: MemoryPlace, grown: Growth, moments: Sequence[RunEvent]) -> Cause | None:
    """Growth that comes with evaluations, checkpoints or epochs, and not between them."""
    for kind, advice in WHERE.items():
        steps = [moment.step for moment in moments if moment.kind == kind]
        with_event = [
            (after.bytes - before.bytes, any(before.step < step <= after.step for step in steps))
            for before, after in pairwise(grown.blocks.lows)
        ]
        there = [rise for rise, event in with_event if event]
        if len(there) < EVENTS_IN_WINDOW:
            continue
        part = sum(there) / grown.blocks.rise_bytes
        if part < limits.EVENT_RISE or len(there) > limits.EVENT_BLOCKS * len(with_event):
            continue
        each = sum(there) / len(there)
        text = f"{percent(min(1.0, part))} of it comes with {PLURAL[kind]}, {size(each)} each"
        return Cause(Evidence(text, place.source, each / 1024 / 1024, "MiB"), (advice,))
    return None


def _of_tensors(grown: Growth, window: RunFacts) -> Cause:
    """By how many tensors stay of each step."""
    since = grown.blocks.lows[0].step
    counted = [
        (one.step, one.allocations)
        for one in readings(window)
        if one.step >= since and one.allocations is not None
    ][-limits.COUNTED_POINTS :]
    slope = theil_sen([step for step, _ in counted], [alive for _, alive in counted])
    graph = "append loss.item(), not loss: a kept result keeps its graph"
    lists = "look for a list or cache of GPU tensors: bound it, or append .cpu() copies"
    if slope is None or len(counted) < limits.LEAST_BLOCKS:
        return Cause(None, (graph, lists))
    if slope.middle < limits.ONE_TENSOR:
        text = "tensors grow in size, not in number"
        larger = "look for a tensor that torch.cat extends at each step"
        return Cause(Evidence(text, "hook", slope.middle, "tensors per step"), (larger, lists))
    each = size(grown.slope.middle / slope.middle)
    text = f"{slope.middle:,.1f} tensors of {each} on average stay after each step"
    evidence = Evidence(text, "hook", slope.middle, "tensors per step")
    if slope.middle >= limits.GRAPH_TENSORS:
        return Cause(evidence, (graph, "detach() what is carried from one step to the next"))
    return Cause(evidence, (lists, graph))


def _of_the_process(window: RunFacts) -> Cause:
    where = "append loss.item(), not loss; look for lists of tensors or metrics never cleared"
    if not window.workers_grown or not has_workers(window):
        return Cause(None, (where, "look for a cache in the dataset: it is read in this process"))
    text = "its workers do not grow: the dataset is not the cause"
    if max(window.workers_grown) >= limits.MEMORY_LEAST_RISE:
        return Cause(None, (where,))
    return Cause(Evidence(text, "proc", max(window.workers_grown) / 1024**2, "MiB"), (where,))


def _of_workers(window: RunFacts) -> Cause:
    """Alike: each touches the same objects, and takes a copy of the pages they lie in."""
    copied = (
        "workers copy what they touch: keep the dataset's metadata in arrays, not in Python lists"
    )
    cached = "look for a cache in __getitem__: every worker has its own"
    grown = window.workers_grown
    if len(grown) < 2:
        return Cause(None, (copied, cached))
    least, most = min(grown), max(grown)
    if least < limits.ALIKE * most:
        text = f"workers have grown by {size(least)} to {size(most)}"
        return Cause(Evidence(text, "proc", most / 1024**2, "MiB"), (cached, copied))
    text = f"each of the {len(grown)} workers has grown by {size(least)} to {size(most)}"
    if any(moment.kind == "workers" for moment in window.moments):
        text += " since they were started anew"
    return Cause(Evidence(text, "proc", most / 1024**2, "MiB"), (copied, cached))


def _of_processes(window: RunFacts) -> Cause:
    """Of the program's own, which load nothing by a DataLoader."""
    kept = "look at what these processes keep: a buffer of what they have met, results, a cache"
    if not window.workers_grown:
        return Cause(None, (kept,))
    least, most = min(window.workers_grown), max(window.workers_grown)
    text = f"each of the {len(window.workers_grown)} has grown by {size(least)} to {size(most)}"
    return Cause(Evidence(text, "proc", most / 1024**2, "MiB"), (kept,))


def fragmentation(window: Window) -> Finding | None:
    """A fifth of what is held lies free between tensors, and requests go to the device after the
    warm-up all the same: the pieces are too small for them. Where requests had to empty the cache,
    a tenth of what was ever held is enough: so much was free even when the most was in use."""
    newest = window.gpu_memory[-1] if window.gpu_memory else None
    if newest is None or newest.inactive_split is None or not newest.reserved:
        return None
    warm = [one for one in readings(window) if one.step > window.warm_step]
    recent = [one for one in warm if newest.step - one.step <= limits.MEMORY_STEPS]
    if not recent:
        return None
    if newest.step - recent[0].step < limits.EARLY_STEPS:
        return None
    part = min((one.inactive_split or 0) / max(1, one.reserved) for one in recent[-2:])
    retries = newest.retries - recent[0].retries
    spare = 1 - newest.peak_allocated / max(1, newest.peak_reserved)
    if part < limits.SPLIT_SHARE and not (retries and spare >= limits.SPLIT_AT_PEAK):
        return None
    asked = _asked(recent[0].device_allocs, newest.device_allocs)
    steps = newest.step - recent[0].step
    if not retries and (asked is None or asked / steps < limits.SPLIT_ALLOCS):
        return None
    if not retries and _is_emptied(WarmCounts(recent[0], newest), window):
        return None
    pieces, held = newest.inactive_split or 0, newest.reserved
    where = "is free between tensors"
    if part < limits.SPLIT_SHARE:
        part, held = spare, newest.peak_reserved
        pieces = newest.peak_reserved - newest.peak_allocated
        where = "was free at the fullest moment"
    text = f"{size(pieces)} of {size(held)} reserved {where}"
    evidence = [Evidence(text, "hook", 100 * part, "%")]
    if retries:
        text = f"{retries:,} allocations in {steps:,} steps had to empty the cache first"
        evidence.append(Evidence(f"{text}: each waits for the GPU", "hook", float(retries)))
    if asked:
        text = f"the device was asked for memory {asked:,} times in {steps:,} steps"
        evidence.append(Evidence(text, "hook", float(asked)))
    return state(
        "memory-growth",
        "fragmentation",
        "warning",
        f"{percent(part)} of reserved GPU memory is in pieces too small to use",
        tuple(evidence),
        (
            "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: free pieces then join",
            "pad batches to a few lengths: the allocator reuses what fits",
        ),
    )


def _is_emptied(counts: WarmCounts, window: Window) -> bool:
    """What is asked for was given back before, with memory to spare: the program empties the
    cache."""
    asked, given_back = counts.asked, counts.given_back
    if not asked or given_back is None or is_full(window):
        return False
    return given_back >= GIVEN_BACK * asked


def _asked(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


def memory_growth(place: MemoryPlace, grown: Growth, leak: bool, window: Window) -> Finding:
    """`growth` is provisional; `leak` is growth that went on, or that will fill the memory soon.
    Only then is the time until it is full given."""
    left = exhaustion(place, grown, window)
    urgent = left is not None and left.urgent(grown)
    confirmed = leak or urgent
    soon = left is not None and confirmed and left.within_a_day
    fills = left is not None and _fills(left, grown)
    cause = cause_of(place, grown, window)
    evidence = [_rise(place, grown, window)]
    if (confirmed or fills) and left is not None:
        evidence.append(_until_full(place, left, window.memory_unit))
    if cause.evidence is not None:
        evidence.append(cause.evidence)
    headline = f"{place.kind} memory grows {size(100 * grown.slope.middle)} per 100 "
    headline += window.memory_unit
    if (soon or fills) and left is not None and left.within_an_hour:
        headline += f", full in {time_left(left)}"
    return state(
        "memory-growth",
        "leak" if confirmed else "growth",
        "critical" if soon else "warning" if confirmed or fills else "info",
        headline,
        tuple(evidence),
        cause.advice,
    )


def _fills(left: Exhaustion, grown: Growth) -> bool:
    """Whether provisional growth matters: the memory is full within an hour, and it went on evenly
    for long. Libraries and caches fill during the first hundreds of steps, and stop."""
    return grown.blocks.whole and grown.even and not grown.gives_back and left.within_an_hour


def will_matter(finding: Finding) -> bool:
    """Whether memory may be the headline: a leak that fills it within a day, growth that seems to
    within an hour. Fragments in it cost time now."""
    if finding.sub == "leak":
        return finding.severity == "critical"
    return finding.severity != "info"


def as_note(finding: Finding) -> Note:
    """Growth that fills nothing in sight, as a note."""
    first = finding.evidence[0]
    return Note(f"{finding.headline} ({first.text})", None, first.source)


def _rise(place: MemoryPlace, grown: Growth, window: Window) -> Evidence:
    first, last = grown.blocks.lows[0], grown.blocks.lows[-1]
    text = f"{place.whose}: {size(first.bytes)} to {size(last.bytes)} "
    text += f"over {last.step - first.step:,} {window.memory_unit}"
    began = onset(place.points, grown, window.moments)
    if began is not None:
        text += f", since about step {began.step:,}"
        if began.beside is not None:
            happened = {"epoch": "a new epoch", "workers": "new workers"}
            what = happened.get(began.beside.kind, began.beside.kind)
            text += f" ({what} at step {began.beside.step:,})"
    return Evidence(text, place.source, grown.blocks.rise_bytes / 1024 / 1024, "MiB")


def _until_full(place: MemoryPlace, left: Exhaustion, unit: MemoryUnit) -> Evidence:
    earliest, latest = left.earliest_steps, left.latest_steps
    steps = [f"{earliest:,.0f}"]
    if isfinite(latest):
        steps.append(f"{latest:,.0f}")
    # One figure where both ends read the same.
    span = " to ".join(dict.fromkeys(steps))
    text = f"memory is full in {span} {unit} ({time_left(left)})"
    return Evidence(text, place.source, earliest, unit)
