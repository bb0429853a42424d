"""What the training thread reports to the publisher of its devices."""

from typing import Any, NamedTuple

from .allocator import AllocatorCounts


class Passed(NamedTuple):
    """A device has passed these marks; the last of them at `t_ns` of the host at the latest."""

    t_ns: int
    device: int
    times: list[tuple[int, int]]
    """(number of the mark, ns on the device's clock), in order of the marks."""


class Aligned(NamedTuple):
    """An idle stream passed an event between two moments of the host."""

    device: int
    before_ns: int
    device_ns: int
    after_ns: int


class Allocated(NamedTuple):
    """What a device's allocator holds at a step's end."""

    t_ns: int
    device: int
    at_backward: int | None
    """Bytes allocated as a backward of the last second began."""
    row: AllocatorCounts
    lowest: int
    """Bytes allocated: the least at the ends of steps since the last time."""
    fraction: float | None
    """Part of the device's memory that PyTorch may take; None: all of it, or not known."""

    def flat(self) -> tuple[Any, ...]:
        """The fields of `messages.Allocated`."""
        return (self.t_ns, self.device, self.at_backward, *self.row, self.lowest, self.fraction)


Report = Passed | Aligned | Allocated
