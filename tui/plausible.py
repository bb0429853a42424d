"""Figures that no run can have: refused where they come in, so that nothing behind has to ask."""

from typing import Final

from probe.wire.messages import Batch

LATEST_NS: Final = 1 << 60
"""36 years after the machine was started."""


def is_plausible(batch: Batch) -> bool:
    """Whether the times in it can be times: from 0 on, ends behind starts, and none too late."""
    times = [(0, batch.sent_ns), (0, batch.open.started_ns), (0, batch.open.since_ns)]
    times += [(row.start_ns, row.end_ns) for row in batch.steps]
    times += [(row.start_ns, row.end_ns) for row in batch.gpu_steps]
    times += [(row.gpu_start_ns, row.gpu_end_ns) for row in batch.gpu_steps]
    return all(0 <= start_ns <= end_ns < LATEST_NS for start_ns, end_ns in times)
