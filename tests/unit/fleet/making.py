"""Watched processes, and what is exported of them."""

from typing import Any

import msgspec

from gpuwatch.tui.fleet.catalogue import MetricName
from gpuwatch.tui.fleet.metrics import ExporterFacts, Family, Watched, families
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.steps import STEP_BOUNDS_S, StepHistogram
from tests.unit.faces.pictures import picture
from tests.unit.session.making import HELLO

EXPORTER = ExporterFacts("0.1.0", "node7", 1.5, {"200": 3, "401": 1}, {"slow": 2}, 0)
HISTOGRAM = StepHistogram(tuple(range(len(STEP_BOUNDS_S) + 1)), 321.5)


def watched(snapshot: Snapshot | None = None, **fields: Any) -> Watched:
    """One process, by default a whole picture of it."""
    seen = snapshot or picture(histogram=HISTOGRAM)
    return Watched(seen, **{"run": "train.py", "host": "node7", **fields})


def as_rank(rank: int, of: int, **fields: Any) -> Snapshot:
    """A rank of a job, with a pid of its own."""
    hello = msgspec.structs.replace(HELLO, rank=rank, world_size=of)
    return picture(hello=hello, pid=48213 + rank, **fields)


def exported(*every: Watched) -> list[Family]:
    """With an exporter that has been read."""
    return families(every, EXPORTER)


def values(found: list[Family], name: MetricName, **labels: str) -> list[Any]:
    """Of the samples of a metric that have these labels."""
    return [
        sample.value
        for family in found
        if family.metric.name == name
        for sample in family.samples
        if labels.items() <= dict(sample.labels).items()
    ]
