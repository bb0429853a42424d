"""Puts a timing event behind every mark of the training thread, and reads those that were passed.

Called by the hooks right after a mark was put, while the recorder holds its method. The
publisher grants a number of steps; when they are stamped and read, the stamper takes itself away,
so that an unsampled step costs one look at an attribute a mark.
"""

from collections import deque
from typing import Any, Final, Literal

from ..recorder import Recorder
from ..wire.marks import (
    BACKWARD_ENTER,
    BACKWARD_LEAVE,
    FETCH_ENTER,
    FETCH_LEAVE,
    MOST_BEHIND_ONE,
    OPTIMIZER_LEAVE,
    STAMPED,
    STEP,
)
from .chain import MOST_PENDING, Chain
from .events import Events
from .memory_look import MemoryLook

READ_A_BOUNDARY: Final = 24
"""Marks read at a step boundary: more than a step has, so that what is behind catches up."""
SLOW_NS: Final = 1_000_000_000
"""Between two alignments of the clocks (20 us)."""
WAITED_NS: Final = 40_000
"""A call that takes longer waited in a full launch queue, as the user's next launch would have (28
ms were seen on an H200): counted as this much."""
PATIENT_NS: Final = 500_000
"""A fetch that takes longer hid the reading that was done before it."""
PATIENCE: Final = 16
"""Backwards without a loader and an optimizer before each is a step, as the monitor has it."""
MOST_REPORTS: Final = 4096
"""Rows that wait for the publisher, who comes four times a second."""

Report = tuple[Literal["passed", "aligned", "allocated"], tuple[Any, ...]]
"""What the training thread reports of its devices: the fields of the message of that name."""


class Stamper:
    """Every method but `grant` belongs to the training thread."""

    def __init__(self, recorder: Recorder, events: Events) -> None:
        self.events = events
        self.reports: deque[Report] = deque(maxlen=MOST_REPORTS)
        """For the publisher, oldest first."""
        self.switched: deque[tuple[int, bool]] = deque(maxlen=MOST_REPORTS)
        """Numbers of marks at which complete steps began to be stamped (True), or no more are."""
        self.near_ns = 0
        """A mark this soon after another shares its event: nothing was launched between them."""
        self.spent_ns = 0
        """What all this has cost the training thread, alignments and the allocator apart."""
        self.stamped = 0
        """Complete steps."""
        self.dropped = 0
        """Marks without an event: a capture ran, or the device was too far behind."""
        self._recorder = recorder
        self._now_ns = recorder.now_ns
        self._chains: dict[int, Chain] = {}
        self._number = 0
        """Of the last mark that was stamped."""
        self._left = 0
        """Complete steps that may still be stamped."""
        self._on = False
        """The open step is being stamped from its beginning."""
        self._explicit = False
        """`probe.step()` was called: it alone ends a step."""
        self._loader = False
        """A fetch was seen: it begins a step. Without one, an optimizer step ends it."""
        self._optimizer = self._stepped = False
        """An optimizer was seen at all, and since the last boundary."""
        self._backwards = 0
        """Before a loader or an optimizer was seen."""
        self._went_back = False
        """A backward came since an optimizer's step: of several that follow one the first ends what
        is counted as a step here, and the monitor has all of them in one."""
        self._others = MOST_BEHIND_ONE
        """Such steps behind it; so many, and a loop has no backwards: what is captured has none."""
        self._put_ns = 0
        """When the last event was recorded."""
        self._read_ns = (0, 0)
        """When the last boundary was done with, and what it cost."""
        self._slow_ns = 0
        self._aside_ns = 0
        """What the slow looks of this call have taken."""
        self._memory = MemoryLook(events)

    def grant(self, steps: int) -> None:
        """Stamp that many complete steps from the next boundary on. Called by the publisher."""
        self._left = steps
        self._recorder.stamp_with(self.stamp)

    def stamp(self, kind: int) -> None:
        """Behind a mark of this kind. The recorder keeps what fails here from the user's loop."""
        began_ns = self._now_ns()
        if self._ends_step(kind):
            self._boundary(began_ns)
            done_ns = self._now_ns()
            self._read_ns = done_ns, min(WAITED_NS, done_ns - began_ns - self._aside_ns)
        elif self._on:
            if kind == FETCH_LEAVE and began_ns - self._read_ns[0] > PATIENT_NS:
                self.spent_ns -= self._read_ns[1]
            self._put(self._next_number(), began_ns)
            if kind == BACKWARD_ENTER and self._memory.wants_backward:
                self._memory.at_backward()
        took_ns = self._now_ns() - began_ns - self._aside_ns
        self._aside_ns = 0
        self.spent_ns += took_ns if took_ns < WAITED_NS else WAITED_NS

    def _ends_step(self, kind: int) -> bool:
        """A fetch after an optimizer step; where there is no loader the first such step behind a
        backward. Where there is no optimizer, every fetch; without either, every backward. Once
        `probe.step()` was called, nothing else."""
        if kind == BACKWARD_ENTER:
            self._went_back, self._others = True, 0
        if kind == STEP:
            self._explicit = True
        if self._explicit:
            return kind == STEP
        if kind == FETCH_ENTER:
            self._loader = True
            return self._stepped or not self._optimizer
        if kind == OPTIMIZER_LEAVE:
            self._optimizer = self._stepped = True
            first, self._went_back = self._went_back, False
            self._others += not first
            return (first or self._others > MOST_BEHIND_ONE) and not self._loader
        if kind == BACKWARD_LEAVE and not (self._loader or self._optimizer):
            self._backwards += 1
            return self._backwards >= PATIENCE
        return False

    def _put(self, number: int, now_ns: int) -> None:
        events = self.events
        device = events.device()
        chain = self._chains.get(device)
        if chain is None:
            chain = self._chains[device] = Chain(events, device)
        handle = events.handle(device)
        flight = chain.flight
        if now_ns - self._put_ns < self.near_ns and flight and chain.handle == handle:
            flight.append((number, None))
            return
        if chain.pending + len(flight) >= MOST_PENDING or (handle and events.capturing()):
            self.dropped += 1
            return
        stream = chain.streams.get(handle)
        if stream is None:
            stream = chain.meet(handle)
        if chain.handle != handle:
            chain.handle = handle if chain.handle is None else -1
        event = chain.pool.pop() if chain.pool else events.make()
        events.record(event, stream)
        self._put_ns = self._now_ns()
        flight.append((number, event))

    def _next_number(self) -> int:
        """A number for the last mark, which is put behind it."""
        self._number += 1
        self._recorder.put_behind(STAMPED, self._number)
        return self._number

    def _boundary(self, now_ns: int) -> None:
        """A step has ended: read what the device has passed, and see whether to go on."""
        number = self._next_number()
        self._stepped = False
        events = self.events
        capturing = events.handle(events.device()) and events.capturing()
        if self._on:
            self._left -= 1
            self.stamped += 1
        if self._on or self._left > 0:
            self._put(number, now_ns)
        if self._on != (self._left > 0):
            self._on = not self._on
            self.switched.append((number, self._on))
        if capturing:
            return  # a query would break the capture
        waiting = 0
        for chain in self._chains.values():
            chain.land()
            if known := chain.resolve(READ_A_BOUNDARY):
                self.reports.append(("passed", (self._now_ns(), chain.device, known)))
            waiting += chain.pending
        if not self._on and not waiting:
            self._recorder.stamp_with(None)
        began_ns = self._now_ns()
        if self._memory.due(began_ns) and (seen := self._memory.at_end(began_ns)) is not None:
            self.reports.append(("allocated", seen))
        if began_ns - self._slow_ns >= SLOW_NS:
            self._align(began_ns)
        self._aside_ns = self._now_ns() - began_ns

    def _align(self, began_ns: int) -> None:
        """Once a second, from the first times on: the clocks side by side."""
        for chain in self._chains.values():
            if chain.anchored:
                self._slow_ns = began_ns
            if (seen := chain.align(self._now_ns)) is not None:
                self.reports.append(("aligned", (chain.device, *seen)))
