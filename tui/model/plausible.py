"""Figures that no run can have are refused on arrival, so that nothing later has to check."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ..steps import Batch, GpuStep, Step

MOST: Final = 1 << 60
"""Of anything: as ns, 36 years after boot; as bytes, an exabyte."""
SIGNED: Final = ("lag_", "uncertain_")
"""Fields that may be below 0: the device's clock can seem ahead."""


def is_plausible(batch: Batch) -> bool:
    """Whether its figures are possible: none below 0, no end before its start."""
    parts = (batch, batch.open, *batch.gpu_memory, *batch.gpu_clocks, *batch.loaders)
    parts = (*parts, *batch.padding)
    rows: tuple[Step | GpuStep, ...] = (*batch.steps, *batch.gpu_steps)
    return (
        are_counted((*parts, *rows))
        and all(row.count >= 1 and row.start_ns <= row.end_ns for row in rows)
        and all(row.gpu_start_ns <= row.gpu_end_ns for row in batch.gpu_steps)
        and all(0 <= ns < MOST for row in rows for ns in row.phases.values())
        and all(clock.every >= 1 for clock in batch.gpu_clocks)
        and all(one.kept <= one.positions > 0 for one in batch.padding)
        and all(one.longest <= one.length for one in batch.padding)
        and (batch.settings is None or are_counted(_within(batch.settings)))
    )


def _within(part: msgspec.Struct) -> Iterator[msgspec.Struct]:
    """It, and all that it holds."""
    yield part
    for value in msgspec.structs.astuple(part):
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, msgspec.Struct):
                yield from _within(one)


def are_counted(rows: Iterable[msgspec.Struct]) -> bool:
    """Whether none of their figures is below 0 or beyond anything."""
    return all(map(_is_counted, rows))


def _is_counted(part: msgspec.Struct) -> bool:
    values = msgspec.structs.astuple(part)
    figures = [value for value in values if isinstance(value, int | float)]
    if not figures or 0 <= min(figures) <= max(figures) < MOST:
        return True
    return all(
        0 <= value < MOST or (name.startswith(SIGNED) and -MOST < value < MOST)
        for name, value in zip(part.__struct_fields__, values, strict=True)
        if isinstance(value, int | float)
    )
