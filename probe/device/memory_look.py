"""What the caching allocator holds at the ends of steps, reported once a second: read from torch's
own counters, which are never reset."""

from typing import Any, Final

from .events import Events

LOOK_NS: Final = 250_000_000
"""Between two looks, 20 us each. Batches of different length leave more or less behind at the end
of a step: of several looks the lowest is what stays. That is below 0.01 % of the time, and of steps
of 100 ms 8 us each."""
REPORT_NS: Final = 990_000_000
"""Between two that are reported: a reading a second is what a monitor keeps and records."""

Counts = tuple[int, int, int, int, int, int, int, int | None, int | None, int | None]
"""Of `messages.Allocated` from `allocated` to `allocations`: bytes, and counts since the start.
None: this torch does not count it."""
Figures = tuple[Counts, int | None]
"""With its `device_frees`, which came later."""
Allocated = tuple[Any, ...]
"""The fields of `messages.Allocated`."""


class MemoryLook:
    """The current device's allocator. Used by the training thread only."""

    __slots__ = (
        "_at_backward",
        "_device",
        "_events",
        "_lowest",
        "_read_ns",
        "_reported_ns",
        "wants_backward",
    )  # fmt: skip

    def __init__(self, events: Events) -> None:
        self._events = events
        self._device = -1
        self._read_ns = self._reported_ns = 0
        self._lowest: int | None = None
        self._at_backward: int | None = None
        self.wants_backward = False
        """It is to be looked at before the next backward too."""

    def due(self, now_ns: int) -> bool:
        """Whether it is time for a look at the end of this step."""
        return now_ns - self._read_ns >= LOOK_NS or now_ns - self._reported_ns >= REPORT_NS

    def at_backward(self) -> None:
        """A backward begins: near the height of the step."""
        self.wants_backward = False
        figures = allocator_figures(self._events.allocator(self._events.device()))
        self._at_backward = figures[0][0] if figures else None

    def at_end(self, now_ns: int) -> Allocated | None:
        """A step has ended; what the looks since the last report saw, if one is due."""
        self._read_ns = now_ns
        device = self._events.device()
        if device != self._device:
            self._device, self._lowest, self._at_backward = device, None, None
        figures = allocator_figures(self._events.allocator(device))
        if figures is None:
            self._reported_ns = now_ns
            return None
        row, frees = figures
        lowest = row[0] if self._lowest is None else min(self._lowest, row[0])
        if now_ns - self._reported_ns < REPORT_NS:
            self._lowest = lowest
            return None
        self._reported_ns, self._lowest, self.wants_backward = now_ns, None, True
        fraction = self._events.fraction(device)
        return now_ns, device, self._at_backward, *row, lowest, fraction, frees


def allocator_figures(stats: dict[str, Any] | None) -> Figures | None:
    """The figures that matter of `torch._C._cuda_memoryStats(device)`; None where there are none.

    On an H200's host that call costs 20 us, the flat public `memory_stats()` 120 us.
    """
    if not stats:
        return None
    try:
        allocated = stats["allocated_bytes"]["all"]
        reserved = stats["reserved_bytes"]["all"]
        counts = (
            allocated["current"],
            reserved["current"],
            stats["active_bytes"]["all"]["current"],
            allocated["peak"],
            reserved["peak"],
            stats["num_alloc_retries"],
            stats["num_ooms"],
            _current(stats, "inactive_split_bytes"),
            stats.get("num_device_alloc"),
            _current(stats, "allocation"),
        )
        return counts, stats.get("num_device_free")
    except KeyError:
        return None  # another allocator (cudaMallocAsync, a plugged one) counts other things


def _current(stats: dict[str, Any], name: str) -> int | None:
    figures = stats.get(name)
    return None if figures is None else figures["all"]["current"]
