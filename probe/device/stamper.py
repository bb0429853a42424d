"""Puts a timing event behind every mark of the training thread, and reads those that were passed.

Called by the hooks right after a mark was put, while `Recorder.stamp` holds one of its two methods.
The publisher grants a number of steps; when they are used up and read, the stamper takes itself
away, so that an unsampled step costs one look at an attribute a mark.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from probe.device.allocator import allocator_row
from probe.device.chain import MOST_PENDING, Chain
from probe.device.events import Events
from probe.device.told import Aligned, Allocated, Passed, Told
from probe.recorder import Recorder
from probe.wire.marks import BACKWARD_ENTER, FETCH_ENTER, OPTIMIZER_LEAVE, STEP

READ_A_BOUNDARY: Final = 24
"""Marks read at a step boundary: more than a step has, so that what is behind catches up."""
SLOW_NS: Final = 1_000_000_000
"""Between two alignments of the clocks (20 us) and two looks at the allocator (20 us)."""
GUESSED_COST_NS: Final = 30_000
SMOOTHING: Final = 0.25
"""Weight of a newly measured step in the published cost."""
TOLD: Final = 4096
"""Rows that wait for the publisher, who comes ten times a second."""


class Stamper:
    """Every method but `grant` belongs to the training thread."""

    def __init__(
        self, recorder: Recorder, events: Events, trip: Callable[[Exception], None]
    ) -> None:
        self.events = events
        self.told: deque[Told] = deque(maxlen=TOLD)
        """For the publisher, oldest first."""
        self.cost_ns = GUESSED_COST_NS
        """Measured cost of stamping one step, with the reading of another."""
        self.dropped = 0
        """Marks without an event: a capture ran, or the device was too far behind."""
        self._recorder = recorder
        self._trip = trip
        self._now_ns = recorder.now_ns
        self._chains: dict[int, Chain] = {}
        self._left = 0
        """Boundaries until the grant is used up."""
        self._loader = False
        """A fetch was seen: it begins a step. Without one, an optimizer step ends it."""
        self._optimizer = self._stepped = False
        """An optimizer was seen at all, and since the last boundary."""
        self._slow_ns = 0
        self._look = False
        """The allocator is to be read before the next backward."""
        self._at_backward: int | None = None
        self._timing = self.timed
        """One object, so that `grant` can tell whether a step is being timed."""
        self._spent_ns: int | None = None
        """What the step that is being timed has cost so far; None before it begins."""

    def grant(self, boundaries: int) -> None:
        """Stamp every mark from now on until that many step boundaries have passed: one complete
        step fewer. Called by the publisher; the first complete step is timed."""
        self._left = boundaries
        if self._recorder.stamp is not self._timing:
            self._spent_ns = None
            self._recorder.stamp = self._timing

    def stamp(self, number: int, kind: int) -> None:
        """Behind mark `number`. Nothing that fails in here reaches the user's loop."""
        try:
            ends = self._ends_step(kind)
            if ends:
                for chain in self._chains.values():
                    chain.land()  # without this mark, which the device has surely not passed
            if self._left:
                self._put(number)
            if ends:
                self._boundary()
            elif self._look and kind == BACKWARD_ENTER:
                self._look = False
                row = allocator_row(self.events.allocator(self.events.device()))
                self._at_backward = row[0] if row else None
        except Exception as error:
            self._trip(error)

    def timed(self, number: int, kind: int) -> None:
        """`stamp` for one whole step, with a look at the clock on both sides."""
        began_ns, left = self._now_ns(), self._left
        self.stamp(number, kind)
        if self._spent_ns is not None:
            self._spent_ns += self._now_ns() - began_ns
        if self._left == left:
            return
        if self._spent_ns is None:
            self._spent_ns = 0
        else:
            self.cost_ns += round(SMOOTHING * (self._spent_ns - self.cost_ns))
            if self._recorder.stamp is not None:
                self._recorder.stamp = self.stamp

    def _ends_step(self, kind: int) -> bool:
        """A fetch after an optimizer step; that step itself where there is no loader. Where there
        is no optimizer, every fetch."""
        if kind == FETCH_ENTER:
            self._loader = True
            return self._stepped or not self._optimizer
        if kind == OPTIMIZER_LEAVE:
            self._optimizer = self._stepped = True
            return not self._loader
        return kind == STEP

    def _put(self, number: int) -> None:
        events = self.events
        device = events.device()
        chain = self._chains.get(device)
        if chain is None:
            chain = self._chains[device] = Chain(events, device)
        handle = events.handle(device)
        if chain.pending + len(chain.flight) >= MOST_PENDING or (handle and events.capturing()):
            self.dropped += 1
            return
        stream = chain.streams.get(handle)
        if stream is None:
            stream = chain.meet(handle)
        if chain.handle != handle:
            chain.handle = handle if chain.handle is None else -1
        event = chain.pool.pop() if chain.pool else events.make()
        events.record(event, stream)
        chain.flight.append((number, event))

    def _boundary(self) -> None:
        """A step has ended: read what the device has passed, and see whether to go on."""
        self._stepped = False
        events = self.events
        if events.handle(events.device()) and events.capturing():
            return  # a query would break the capture
        waiting = 0
        for chain in self._chains.values():
            if known := chain.resolve(READ_A_BOUNDARY):
                self.told.append(Passed(self._now_ns(), chain.device, known))
            waiting += chain.pending + len(chain.flight)
        if self._left:
            self._left -= 1
        elif not waiting:
            self._recorder.stamp = None
        if self._spent_ns is None and self._now_ns() - self._slow_ns >= SLOW_NS:
            self._slowly()

    def _slowly(self) -> None:
        """Once a second, from the first times on: the clocks side by side, and the allocator."""
        for chain in self._chains.values():
            if chain.anchored:
                self._slow_ns = self._now_ns()
            if (seen := chain.align(self._now_ns)) is not None:
                self.told.append(Aligned(chain.device, *seen))
        device = self.events.device()
        if (row := allocator_row(self.events.allocator(device))) is not None:
            self.told.append(Allocated(self._now_ns(), device, self._at_backward, row))
        self._look = True
