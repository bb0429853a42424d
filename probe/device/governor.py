"""The publisher's side of the device marks: finds the accelerator, grants steps, takes what came.

Touches no device: it asks torch whether the program has begun to use one, and that is all.
"""

from collections.abc import Callable, Iterator
from typing import Final

from probe.device.budget import LEAST, UNWATCHED_NS, boundaries_for
from probe.device.events import Events, find_events
from probe.device.stamper import Stamper
from probe.device.told import Told
from probe.recorder import Recorder

FIND_NS: Final = 500_000_000


class Governor:
    """One process's device marks, from the first use of an accelerator on."""

    def __init__(
        self,
        recorder: Recorder,
        trip: Callable[[Exception], None],
        find: Callable[[], Events | None] = find_events,
    ) -> None:
        self._recorder = recorder
        self._trip = trip
        self._find = find
        self._next_ns = 0
        self.stamper: Stamper | None = None
        """None until an accelerator is in use."""

    def turn(self, now_ns: int, turn_ns: int) -> None:
        """Grant what the budget allows for the next turn."""
        if self.stamper is None:
            if now_ns < self._next_ns:
                return
            self._next_ns = now_ns + FIND_NS
            events = self._find()
            if events is None:
                return
            self.stamper = Stamper(self._recorder, events, self._trip)
            self._next_ns = 0
        if not self._recorder.on:
            return
        if self._recorder.watched:
            self.stamper.grant(boundaries_for(self.stamper.cost_ns, turn_ns))
        elif now_ns >= self._next_ns:
            self._next_ns = now_ns + UNWATCHED_NS
            self.stamper.grant(LEAST)

    def told(self) -> Iterator[Told]:
        """What the training thread has told since the last call."""
        if self.stamper is None:
            return
        told = self.stamper.told
        while told:
            yield told.popleft()
