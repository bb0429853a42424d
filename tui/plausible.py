"""Figures that no run can have: refused where they come in, so that nothing behind has to ask."""

from typing import Final

import msgspec

from probe.wire.messages import Batch, GpuStep, Step

MOST: Final = 1 << 60
"""Of anything: as a time, 36 years after the machine was started; as bytes, an exabyte."""
SIGNED: Final = ("lag_", "uncertain_")
"""What begins so may lie below 0: the device can be seen to be ahead."""


def is_plausible(batch: Batch) -> bool:
    """Whether the figures in it can be some: counted from 0 on, and ends behind their starts."""
    parts = (batch, batch.open, *batch.gpu_memory, *batch.gpu_clocks, *batch.loaders)
    rows: tuple[Step | GpuStep, ...] = (*batch.steps, *batch.gpu_steps)
    return (
        all(_is_counted(part) for part in (*parts, *rows))
        and all(row.count >= 1 and row.start_ns <= row.end_ns for row in rows)
        and all(row.gpu_start_ns <= row.gpu_end_ns for row in batch.gpu_steps)
        and all(0 <= ns < MOST for row in rows for ns in row.phases.values())
        and all(clock.every >= 1 for clock in batch.gpu_clocks)
    )


def _is_counted(part: msgspec.Struct) -> bool:
    values = msgspec.structs.astuple(part)
    figures = [value for value in values if isinstance(value, int)]
    if not figures or 0 <= min(figures) <= max(figures) < MOST:
        return True
    return all(
        0 <= value < MOST or (name.startswith(SIGNED) and -MOST < value < MOST)
        for name, value in zip(part.__struct_fields__, values, strict=True)
        if isinstance(value, int)
    )
