"""The three memories that may grow: the device's, the training process's, its workers'."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low
from typing import Literal

from probe.wire.messages import GpuMemory
from tui.verdict import policy
from tui.verdict.findings import Source
from tui.verdict.growth import Growth, growth
from tui.verdict.window import MemoryPoint, Moment, Window


@dataclass(frozen=True, slots=True)
class Place:
    """One memory."""

    kind: Literal["GPU", "host"]
    whose: str
    source: Source
    points: Sequence[MemoryPoint]
    """After the warm-up, oldest first."""
    limit_bytes: int | None
    """What it could grow to; None: not known."""


def of_tensors(window: Window) -> Place:
    """The device's, as PyTorch's allocator counts it."""
    points = [
        MemoryPoint(one.step, one.t_ns, one.allocated if one.lowest is None else one.lowest)
        for one in readings(window)
    ]
    limit = window.gpu_memory_limit_bytes
    if limit is not None and window.gpu_memory:
        # The free parts of blocks that are partly in use: larger requests cannot have them.
        limit -= window.gpu_memory[-1].inactive_split or 0
    return Place("GPU", "tensors", "hook", _warm(points, window), limit)


def of_the_process(window: Window) -> Place:
    """The training process's."""
    points = _warm(window.memory, window)
    return Place("host", "the training process", "proc", points, window.memory_limit_bytes)


def of_workers(window: Window) -> Place:
    """Its DataLoader workers' together."""
    points, limit = _warm(window.worker_memory, window), window.memory_limit_bytes
    if limit is not None and points and window.memory:
        limit += points[-1].bytes - window.memory[-1].bytes  # what is free is free for either
    return Place("host", "the workers' memory", "proc", points, limit)


def readings(window: Window) -> list[GpuMemory]:
    """The allocator's, of the device that was read last."""
    if not window.gpu_memory:
        return []
    device = window.gpu_memory[-1].device
    return [one for one in window.gpu_memory if one.device == device]


def _warm(points: Sequence[MemoryPoint], window: Window) -> list[MemoryPoint]:
    return [point for point in points if point.step > window.warm_step]


def trend(place: Place, moments: tuple[Moment, ...]) -> Growth | None:
    """Growth by steps; else from one epoch, evaluation or checkpoint to the next."""
    epochs = [moment.step for moment in moments if moment.kind == "epoch"]
    found = growth(place.points, epochs)
    if found is not None or not place.points:
        return found
    for kind in ("epoch", "evaluation", "checkpoint"):
        steps = [moment.step for moment in moments if moment.kind == kind]
        lengths = [after - before for before, after in pairwise(steps[-policy.MEMORY_BLOCKS :])]
        if len(lengths) >= policy.LEAST_BLOCKS - 1:
            found = growth(place.points, (), median_low(lengths))
        if found is not None:
            return found
    return None
