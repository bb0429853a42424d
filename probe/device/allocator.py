"""What the caching allocator holds: read from torch's own counters, which are never reset."""

from typing import Any

Row = tuple[int, int, int, int, int, int, int]
"""allocated, reserved, active, peak allocated, peak reserved (bytes), retries, OOMs."""


def allocator_row(stats: dict[str, Any] | None) -> Row | None:
    """The figures that matter of `torch._C._cuda_memoryStats(device)`; None where there are none.

    That call costs 20 us, the flat public `memory_stats()` 120 us (h200-facts.md).
    """
    if not stats:
        return None
    try:
        allocated = stats["allocated_bytes"]["all"]
        reserved = stats["reserved_bytes"]["all"]
        return (
            allocated["current"],
            reserved["current"],
            stats["active_bytes"]["all"]["current"],
            allocated["peak"],
            reserved["peak"],
            stats["num_alloc_retries"],
            stats["num_ooms"],
        )
    except KeyError:
        return None  # another allocator (cudaMallocAsync, a plugged one) counts other things
