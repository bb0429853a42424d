"""A device that runs behind the host on a held clock: its kernels take the time they are given."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.unit.probe.held_clock import MS, HeldClock

REACH_NS = 6_000
"""From the host's call until an idle device has passed an event."""


@dataclass
class FakeStream:
    """Work in order; the handle is what torch's raw stream is."""

    handle: int
    free_ns: int = 0
    capturing: bool = False


@dataclass
class FakeEvent:
    """Passed at `passed_ns` of the host's clock, once recorded."""

    passed_ns: int | None = None
    recorded: int = 0


@dataclass
class FakeDevice:
    """`probe.device.events.Events` on a held clock."""

    clock: HeldClock
    offset_ns: int = 5_000_000_000
    """Host time less device time."""
    current: FakeStream = field(default_factory=lambda: FakeStream(0))
    index: int = 0
    stats: dict[str, Any] | Callable[[], dict[str, Any]] | None = None
    stats_ns: int = 0
    part: float | None = None
    """Of the memory that the process may take."""
    events: list[FakeEvent] = field(default_factory=list)
    """All that were made."""
    query_ns: int = 400
    slow_side: bool = False
    """The side stream shares a hardware queue with busy ones."""

    def launch(self, ms: float) -> None:
        """The host puts a kernel of that length on the current stream."""
        stream = self.current
        stream.free_ns = max(stream.free_ns, self.clock.now_ns + REACH_NS) + round(ms * MS)

    def synchronize(self) -> None:
        """The host waits until the current stream is done."""
        self.clock.now_ns = max(self.clock.now_ns, self.current.free_ns + 2_000)

    def device(self) -> int:
        return self.index

    def handle(self, device: int) -> int:
        return self.current.handle

    def stream(self, device: int) -> FakeStream:
        return self.current

    def capturing(self) -> bool:
        return self.current.capturing

    def side_stream(self, device: int) -> FakeStream:
        return FakeStream(99)

    def make(self) -> FakeEvent:
        self.events.append(FakeEvent())
        return self.events[-1]

    def record(self, event: FakeEvent, stream: FakeStream) -> None:
        assert not stream.capturing, "an event was recorded into a capture"
        event.recorded += 1
        busy = self.current.free_ns if self.slow_side and stream.handle == 99 else stream.free_ns
        event.passed_ns = max(busy, self.clock.now_ns + REACH_NS)

    def query(self, event: FakeEvent) -> bool:
        assert not self.current.capturing, "a query breaks a capture"
        self.clock.now_ns += self.query_ns
        assert event.passed_ns is not None
        return self.clock.now_ns >= event.passed_ns

    def elapsed_ms(self, earlier: FakeEvent, later: FakeEvent) -> float:
        """float32, as the device answers."""
        assert earlier.passed_ns is not None
        assert later.passed_ns is not None
        assert self.clock.now_ns >= max(earlier.passed_ns, later.passed_ns), "not passed yet"
        return float(np.float32((later.passed_ns - earlier.passed_ns) / 1e6))

    def allocator(self, device: int) -> dict[str, Any] | None:
        self.clock.now_ns += self.stats_ns
        return self.stats() if callable(self.stats) else self.stats

    def fraction(self, device: int) -> float | None:
        return self.part
