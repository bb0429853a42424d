"""How the device's clock is read, told once a second: one step in how many, at what cost."""

from typing import Final

from ..ledger import Ledger
from ..rows import GpuClock
from .governor import Governor

TOLD_NS: Final = 1_000_000_000


class Sampling:
    """Counts the steps of the last second, and those of them that the device told."""

    def __init__(self) -> None:
        self._next_ns = 0
        self._steps = 0
        self._measured = 0

    def clocks(
        self, now_ns: int, steps: int, measured: int, ledger: Ledger, governor: Governor
    ) -> list[GpuClock]:
        """One row a device when a second has passed, else none.

        `steps` were completed since the start, `measured` of them told since the last call.
        """
        self._measured += measured
        if now_ns < self._next_ns:
            return []
        self._next_ns = now_ns + TOLD_NS
        dropped = governor.stamper.dropped if governor.stamper else 0
        every = max(1, round((steps - self._steps) / max(1, self._measured)))
        self._steps, self._measured = steps, 0
        return [
            GpuClock(device, ledger.uncertain_ns(device, now_ns), every, governor.cost_ns, dropped)
            for device in ledger.devices
        ]
