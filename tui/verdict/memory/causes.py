"""What makes a memory grow, by the numbers: tensors, events, workers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ..findings import Evidence
from ..format import mib, percent
from ..statistics import theil_sen
from ..thresholds.causes import EVENTS_IN_WINDOW
from ..thresholds.memory import (
    ALIKE,
    COUNTED_POINTS,
    EVENT_BLOCKS,
    EVENT_RISE,
    GRAPH_TENSORS,
    LEAST_BLOCKS,
    MEMORY_LEAST_RISE,
    ONE_TENSOR,
)
from ..window import RunEvent, RunFacts
from .growth import Growth
from .trends import MemoryPlace, readings

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

SAID: Final = {"evaluation": "evaluations", "checkpoint": "checkpoints", "epoch": "new epochs"}


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely one."""

    evidence: Evidence | None
    advice: tuple[str, ...]


def cause_of(place: MemoryPlace, grown: Growth, window: RunFacts) -> Cause:
    """The first that shows itself; else what it most often is."""
    if place.points and place.whose == "the workers' memory":
        return _of_workers(window)
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
        if part < EVENT_RISE or len(there) > EVENT_BLOCKS * len(with_event):
            continue
        each = sum(there) / len(there)
        text = f"{percent(min(1.0, part))} of it comes with {SAID[kind]}, {mib(each)} each"
        return Cause(Evidence(text, place.source, each / 1024 / 1024, "MiB"), (advice,))
    return None


def _of_tensors(grown: Growth, window: RunFacts) -> Cause:
    """By how many tensors stay of each step."""
    since = grown.blocks.lows[0].step
    counted = [
        (one.step, one.allocations)
        for one in readings(window)
        if one.step >= since and one.allocations is not None
    ][-COUNTED_POINTS:]
    slope = theil_sen([step for step, _ in counted], [alive for _, alive in counted])
    graph = "append loss.item(), not loss: a kept result keeps its graph"
    lists = "look for a list or cache of GPU tensors: bound it, or append .cpu() copies"
    if slope is None or len(counted) < LEAST_BLOCKS:
        return Cause(None, (graph, lists))
    if slope.middle < ONE_TENSOR:
        text = "tensors grow in size, not in number"
        larger = "look for a tensor that torch.cat extends at each step"
        return Cause(Evidence(text, "hook", slope.middle, "tensors per step"), (larger, lists))
    each = mib(grown.slope.middle / slope.middle)
    text = f"{slope.middle:,.1f} tensors of {each} on average stay after each step"
    evidence = Evidence(text, "hook", slope.middle, "tensors per step")
    if slope.middle >= GRAPH_TENSORS:
        return Cause(evidence, (graph, "detach() what is carried from one step to the next"))
    return Cause(evidence, (lists, graph))


def _of_the_process(window: RunFacts) -> Cause:
    where = "append loss.item(), not loss; look for lists of tensors or metrics never cleared"
    if not window.workers_grown:
        return Cause(None, (where, "look for a cache in the dataset: it is read in this process"))
    text = "its workers do not grow: the dataset is not the cause"
    if max(window.workers_grown) >= MEMORY_LEAST_RISE:
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
    if least < ALIKE * most:
        text = f"workers have grown by {mib(least)} to {mib(most)}"
        return Cause(Evidence(text, "proc", most / 1024**2, "MiB"), (cached, copied))
    text = f"each of the {len(grown)} workers has grown by {mib(least)} to {mib(most)}"
    if any(moment.kind == "workers" for moment in window.moments):
        text += " since they were started anew"
    return Cause(Evidence(text, "proc", most / 1024**2, "MiB"), (copied, cached))
