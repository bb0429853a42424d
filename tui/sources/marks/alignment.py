"""Where a device's clock lies on the host's: an interval that only true bounds narrow.

offset = host time - device time. Nothing is waited for: the device passes a mark after the host has
put it, which bounds the offset from below, tightly when its stream was idle; and before the host
has seen it passed, which bounds it from above. An idle stream that is asked gives both at once.
Measured on an H200 against record-and-synchronise: the idle stream is 1 to 5 us off, behind 300
queued matrix products too; the marks alone 65 us (GPU-bound) to 2.4 ms (`item()` in each step).
With CUDA_DEVICE_MAX_CONNECTIONS=1 the idle stream does not answer while the device is busy, and the
marks have to do.
"""

from typing import Final

DRIFT: Final = 20e-6
"""Bounds loosen by this much a second of their age. Two crystals differ by less: on an H200 11 us
in 5 s, within the error of that measurement."""


class Alignment:
    """All times ns."""

    def __init__(self) -> None:
        self._low: tuple[int, int] | None = None
        """(bound, host time of its observation)."""
        self._high: tuple[int, int] | None = None

    def at_least(self, offset_ns: int, t_ns: int) -> None:
        """The offset is not below this."""
        if self._low is None or offset_ns > self._low_at(t_ns):
            self._low = (offset_ns, t_ns)
            if self._high is not None and self._high_at(t_ns) < offset_ns:
                self._high = None  # the clocks ran apart faster than that: what is newer is true

    def at_most(self, offset_ns: int, t_ns: int) -> None:
        """The offset is not above this."""
        if self._high is None or offset_ns < self._high_at(t_ns):
            self._high = (offset_ns, t_ns)
            if self._low is not None and self._low_at(t_ns) > offset_ns:
                self._low = None

    def at(self, t_ns: int) -> tuple[int, int] | None:
        """(offset, half of what is open); None while one side is not known."""
        if self._low is None or self._high is None:
            return None
        low, high = self._low_at(t_ns), self._high_at(t_ns)
        return (low + high) // 2, max(0, high - low + 1) // 2

    def _low_at(self, t_ns: int) -> int:
        assert self._low is not None
        return self._low[0] - round(DRIFT * abs(t_ns - self._low[1]))

    def _high_at(self, t_ns: int) -> int:
        assert self._high is not None
        return self._high[0] + round(DRIFT * abs(t_ns - self._high[1]))
