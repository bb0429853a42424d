"""One device's clock: events in flight, and the times of those that were passed.

Times are nanoseconds since the first event. A duration from the device is float32 milliseconds, so
each flight is measured from the end of the one before: over a second that is exact to 0.06 us, and
the sum is kept in integers. So the resolution is the same after a week.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from .events import Event, Events, Stream

MOST_PENDING: Final = 512
"""Events that the device may be behind. A queue of 1,000 kernels is some hundred steps at most."""
SPINS: Final = 60
"""Queries of an idle stream's event, 0.4 us each: an answer takes 5 to 15 us."""

Times = list[tuple[int, int]]
"""(number of the mark, ns on the device's clock)."""
Flight = list[tuple[int, Event | None]]
"""Marks and their events; None shares the event before it."""


class Chain:
    """Used by the training thread only."""

    __slots__ = ("_anchor", "_anchor_ns", "_events", "_flights", "_side", "_side_event",
                 "device", "flight", "handle", "pending", "pool", "streams")  # fmt: skip

    def __init__(self, events: Events, device: int) -> None:
        self._events = events
        self.device = device
        self.streams: dict[int, Stream] = {}
        """Streams by their handle: looking one up costs 4.5 us."""
        self.pool: list[Event] = []
        self.flight: Flight = []
        """Marks since the last boundary was landed."""
        self.handle: int | None = None
        """Handle of the flight's stream; -1: several."""
        self.pending = 0
        self._flights: deque[tuple[bool, Flight]] = deque()
        self._anchor: Event | None = None
        self._anchor_ns = 0
        self._side: Stream | None = None
        self._side_event: Event | None = None

    @property
    def anchored(self) -> bool:
        """The device has had a time."""
        return self._anchor is not None

    def meet(self, handle: int) -> Stream:
        """Remember the current stream."""
        if len(self.streams) >= 64:
            self.streams.clear()
        stream = self.streams[handle] = self._events.stream(self.device)
        return stream

    def land(self) -> None:
        """The flight is complete: a step boundary."""
        if self.flight:
            self._flights.append((self.handle == -1, self.flight))
            self.pending += len(self.flight)
            self.flight = []
        self.handle = None

    def resolve(self, most: int) -> Times:
        """Times of the flights that the device has passed, about `most` marks of them.

        On one stream events are passed in order, so one query answers for a whole flight.
        """
        known: Times = []
        while self._flights and len(known) < most and self._has_passed(*self._flights[0]):
            _, flight = self._flights.popleft()
            self.pending -= len(flight)
            self._measure(flight, known)
        return known

    def _has_passed(self, mixed: bool, flight: Flight) -> bool:
        query = self._events.query
        for _, event in reversed(flight):
            if event is not None:
                if not query(event):
                    return False
                if not mixed:
                    return True
        return True

    def align(self, now_ns: Callable[[], int]) -> tuple[int, int, int] | None:
        """Ask an idle stream what time it is: (host ns before, device ns, host ns after).

        None when it did not answer at once (its hardware queue is shared with busy ones), or
        before anything was measured. Takes 10 to 25 us.
        """
        if self._anchor is None:
            return None
        events = self._events
        if self._side is None or self._side_event is None:
            self._side, self._side_event = events.side_stream(self.device), events.make()
        event = self._side_event
        before_ns = now_ns()
        events.record(event, self._side)
        for _ in range(SPINS):
            if events.query(event):
                after_ns = now_ns()
                return before_ns, self._since_anchor(event), after_ns
        return None

    def _measure(self, flight: Flight, known: Times) -> None:
        ns = self._anchor_ns
        retired: list[Event] = []
        for number, event in flight:
            if event is not None:
                if self._anchor is None:
                    self._anchor = event
                else:
                    ns = self._since_anchor(event)
                    retired.append(event)
            known.append((number, ns))
        if retired:
            self.pool.append(self._anchor)
            self._anchor, self._anchor_ns = retired.pop(), ns
            self.pool.extend(retired)

    def _since_anchor(self, event: Event) -> int:
        return self._anchor_ns + round(self._events.elapsed_ms(self._anchor, event) * 1e6)
