"""A large embedding with dense gradients: an optimizer updates rows that no step uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from ...steps import GpuStep, Step
from ..on_device import on_device
from ..step_time import spent
from ..thresholds.causes import (
    DENSE_PASSES,
    DENSE_PASSES_FUSED,
    DENSE_PASSES_SGD,
    GRADIENT_PASSES,
    LARGE_TABLE_BYTES,
    LEAST_BYTES_PER_S,
    SPARSE_NS,
    SPARSE_PASSES,
    SPARSE_SPARES,
    SPARSE_SPARES_LARGE,
)
from ..window import RunFacts, StepWindow

TAKES_SPARSE: Final = ("SGD", "Adagrad", "SparseAdam")
"""Those of torch.optim that take sparse gradients themselves."""


@dataclass(frozen=True, slots=True)
class TableUsed:
    """An embedding with dense gradients, by the graph of a backward."""

    rows: int
    lookups: float | None
    """In a step; a row may be looked up twice. None where not known."""
    part: float
    """The table's, of the bytes that the optimizer updates."""
    bytes: int
    """Of the table."""
    backwards: float = 1.0
    """For each update."""

    @property
    def spares(self) -> float:
        """Part of the bytes that the optimizer updates that lie in rows which a step does not use:
        all of the table, where its lookups are not known."""
        return self.part * max(0.0, 1 - (self.lookups or 0.0) / self.rows)


def table_used(window: RunFacts) -> TableUsed | None:
    """None without such a table. Bags, and torch before 2.5, do not tell their lookups: then all of
    the table counts, an upper bound."""
    settings = window.settings
    if settings is None or not (settings.table_rows and settings.table_bytes):
        return None
    part = settings.table_bytes / max(settings.table_bytes, settings.parameter_bytes or 0)
    if settings.table_lookups is None:
        return TableUsed(settings.table_rows, None, part, settings.table_bytes)
    backwards = window.passes if isinstance(window, StepWindow) else 1.0
    lookups = settings.table_lookups * backwards
    return TableUsed(settings.table_rows, lookups, part, settings.table_bytes, backwards)


def spared_by_rows(window: RunFacts, used: TableUsed) -> tuple[float, float, float]:
    """What sparse gradients give back, as parts of the optimizer's time: least, middle, most. The
    backward's gradients of the table's size are in it, on a CPU as measured, on a GPU by the
    memory's traffic."""
    settings = window.settings
    if not window.gpu_present or (settings is not None and settings.parameter_device == "cpu"):
        large = used.bytes > LARGE_TABLE_BYTES
        spares = SPARSE_SPARES_LARGE if large else SPARSE_SPARES
        least, middle, most = (used.spares * more for more in spares)
        return least, middle, most
    passes = DENSE_PASSES
    if settings is not None and settings.optimizer == "SGD":
        passes = DENSE_PASSES_SGD
    elif settings is not None and settings.fused:
        passes = DENSE_PASSES_FUSED
    table, taken_ns = used.part, update_ns(window)
    if taken_ns != inf:
        # Of one that waits for launches the table is no more than its bytes take to move.
        moving_ns = passes * used.bytes / LEAST_BYTES_PER_S * 1e9
        table = min(table, moving_ns / taken_ns)
    if used.lookups is None:
        return 0.0, table, table
    first, further = GRADIENT_PASSES
    dense = passes + first * used.backwards + further * (used.backwards - 1)
    looked_up = used.lookups / used.rows
    most, middle, least = (
        max(0.0, table * (dense - rows * looked_up) / passes - ns / taken_ns)
        for rows, ns in zip(SPARSE_PASSES, SPARSE_NS, strict=True)
    )
    return least, middle, most


def update_ns(window: RunFacts) -> float:
    """What an update takes, at least 1 ns; endless where no mark shows it."""
    if not isinstance(window, StepWindow):
        return inf
    rows = _measured(window)
    return max(1.0, sum(row.optimizer_ns for row in rows) / max(1, sum(row.count for row in rows)))


def backward_share(window: StepWindow) -> float:
    """The backward's part of the time, 0 to 1, on the GPU's clock where that is read."""
    device = on_device(window)
    backward_ns = sum(row.backward_ns for row in _measured(window))
    if device is None:
        return backward_ns / max(1, spent(window.steps).wall_ns)
    return backward_ns / max(1, sum(row.wall_ns for row in device.rows))


def _measured(window: StepWindow) -> Sequence[Step | GpuStep]:
    """The steps on the GPU's clock where that is read, else on the host's."""
    device = on_device(window)
    return window.steps if device is None else device.rows


def sparse_advice(window: RunFacts, used: TableUsed) -> str:
    """What to write, and why."""
    name = window.settings.optimizer if window.settings is not None else None
    by = "" if name in TAKES_SPARSE else " and SparseAdam for it"
    all_rows = f"{name or 'the optimizer'} updates all its {used.rows:,} rows"
    text = f"nn.Embedding(..., sparse=True){by}: {all_rows}"
    if used.lookups is None:
        return f"{text}, used or not"
    return f"{text}, and a step looks up {used.lookups:,.0f}"
