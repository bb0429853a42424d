"""What the operations of a traced step take on a device, by events around each of them."""

from typing import Any

from ..device.events import Events
from .tracer import Taken


class DeviceTimes:
    """Events of a device around each operation."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._streams: dict[tuple[int, int], Any] = {}

    def is_captured(self) -> bool:
        """What is put on the current stream becomes part of a graph."""
        return self._events.capturing()

    def begin(self) -> Any:
        """An event before it."""
        return self._put()

    def end(self, begun: Any) -> Any:
        """Both events."""
        return begun, self._put()

    def _put(self) -> Any:
        events = self._events
        device = events.device()
        key = device, events.handle(device)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = events.stream(device)
        event = events.make()
        events.record(event, stream)
        return event

    def has_passed(self, taken: list[Taken]) -> bool:
        """The device is behind all of them."""
        last = taken[-1].events  # of the others some may be on other streams
        return last is None or (
            self._events.query(last[1])
            and all(self._events.query(one.events[1]) for one in taken if one.events)
        )

    def times(self, taken: list[Taken]) -> Any:
        """What each took on the device, beyond what the shortest did, which has nothing there."""
        took = {}
        for one in taken:
            if one.events:
                took[id(one)] = round(self._events.elapsed_ms(*one.events) * 1e6)
        least = min(took.values(), default=0)
        return lambda one: max(0, took.get(id(one), 0) - least)
