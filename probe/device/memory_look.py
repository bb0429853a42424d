"""Looks at the allocator at the ends of steps, and reports them once a second."""

from typing import Final

from .allocator import allocator_row
from .events import Events
from .reports import Allocated

LOOK_NS: Final = 250_000_000
"""Between two looks, 20 us each. Batches of different length leave more or less behind at the end
of a step: of several looks the lowest is what stays. That is below 0.01 % of the time, and of steps
of 100 ms 8 us each."""
REPORT_NS: Final = 990_000_000
"""Between two that are reported: a reading a second is what a monitor keeps and records."""


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
        row = allocator_row(self._events.allocator(self._events.device()))
        self._at_backward = row.allocated if row else None

    def at_end(self, now_ns: int) -> Allocated | None:
        """A step has ended; what the looks since the last report saw, if one is due."""
        self._read_ns = now_ns
        device = self._events.device()
        if device != self._device:
            self._device, self._lowest, self._at_backward = device, None, None
        row = allocator_row(self._events.allocator(device))
        if row is None:
            self._reported_ns = now_ns
            return None
        lowest = row.allocated if self._lowest is None else min(self._lowest, row.allocated)
        if now_ns - self._reported_ns < REPORT_NS:
            self._lowest = lowest
            return None
        self._reported_ns, self._lowest, self.wants_backward = now_ns, None, True
        fraction = self._events.fraction(device)
        return Allocated(now_ns, device, self._at_backward, row, lowest, fraction)
