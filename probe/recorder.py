"""The hot path: a hook says that a boundary was passed, and one tuple goes onto the ring.

Everything else (steps, phases, encoding, sending) happens on the publisher's thread, from the ring.

The three hooks of every step write the tuple themselves, under a handler that trips the fuse::

    if recorder.resting: return original(...)
    if get_ident() != recorder.owner and not recorder.claim(KIND): return original(...)
    put((n := number(), KIND, now_ns(), detail))
    if (stamp := recorder.stamp) is not None: stamp(n, KIND)

In a real loop, whose caches are cold, a call of `mark` costs 2 us more than that (and one store
into the state page 0.5 us, so the publisher does that four times a second instead).
"""

import itertools
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final

from . import clock
from .wire import marks

Mark = tuple[int, int, int, Any]
"""(running number, kind, perf_counter_ns, detail)."""

RING_MARKS: Final = 16_384
"""Some 2,700 plain steps: what a monitor that comes late is told of. 3 MB when full."""

OWNER_SILENT_NS: Final = 5_000_000_000
"""A backward on another thread takes the timeline over after this much silence of the old owner."""


class Recorder:
    """Takes marks from the hooks of one process. Holds no lock: a fork may copy it at any moment.

    `arm` is asked when an unarmed recorder is to take a mark: it decides whether this process is
    one to watch.
    """

    __slots__ = ("_arm", "_arming", "armed", "glance", "last", "now_ns", "number", "on", "owner",
                 "put", "rested", "resting", "ring", "stamp", "trained", "trip",
                 "watched")  # fmt: skip

    def __init__(
        self,
        arm: Callable[[int], bool],
        trip: Callable[[Exception], None],
        now_ns: Callable[[], int] = clock.now_ns,
    ) -> None:
        self._arm = arm
        self._arming: dict[str, object] = {}
        """Who arms, of threads whose first backward comes at once: whoever is first in here."""
        self.trip = trip
        """Ends the watching, never the training: for whatever fails in a hook."""
        self.now_ns = now_ns
        self.on = True
        """False: no thread may mark, ever again."""
        self.armed = False
        self.watched = False
        """Somebody looks: hooks may afford the signals that cost a little more."""
        self.resting = False
        """Hooks of every step pass by without a mark: nobody watches and the steps are short."""
        self.rested = 0
        """Ends of the owner's optimizer steps, nested ones too, that passed unmarked since the rest
        began."""
        self.trained = False
        """The owner has run a backward, so other threads cannot take the timeline from it."""
        self.owner = 0
        """Identity of the one thread that marks without asking; 0 while nobody does."""
        self.ring: deque[Mark] = deque(maxlen=RING_MARKS)
        self.last: Mark = (-1, 0, 0, None)
        """The newest mark that has left the ring."""
        self.stamp: Callable[[int, int], None] | None = None
        """Puts a device's event behind a mark just put; None while no step is to have them."""
        self.glance: Callable[[int, Any], None] | None = None
        """Looks at an optimizer and at a backward, for the settings; None while nobody asks."""
        self.put = self.ring.append
        self.number = itertools.count().__next__

    def mark(
        self, kind: int, detail: Any = None, sight: Callable[[Any], Any] | None = None
    ) -> None:
        """Record a boundary, now; with `sight`, its detail is what that sees in `detail`.

        Nothing that fails in here reaches the user's loop.
        """
        try:
            if self.resting or (get_ident() != self.owner and not self.claim(kind)):
                return
            if sight is not None:
                detail = sight(detail)
            number = self.number()
            self.put((number, kind, self.now_ns(), detail))
            if (stamp := self.stamp) is not None and kind not in marks.ASIDES:
                stamp(number, kind)
        except Exception as error:
            self.trip(error)

    def claim(self, kind: int) -> bool:
        """Whether a thread that does not own the timeline may mark, taking it over if need be.

        Nothing that fails in here reaches the user's loop.
        """
        try:
            return self.on and self._may_mark(kind)
        except Exception as error:
            self.trip(error)
            return False

    def _may_mark(self, kind: int) -> bool:
        if not self.armed and not self._arms(kind):
            return False
        if self.owner == 0 or (kind == marks.BACKWARD_ENTER and self._may_be_taken_over()):
            self.owner = get_ident()
            self.trained |= kind == marks.BACKWARD_ENTER
            return True
        if kind == marks.OPTIMIZER_LEAVE and self.newest()[1] == marks.BACKWARD_ENTER:
            # On CUDA an optimizer-in-backward steps on the autograd thread: counted, no phase.
            self.put((self.number(), marks.OPTIMIZER_INSIDE, self.now_ns(), None))
        return False

    def _arms(self, kind: int) -> bool:
        """Whether this very mark arms the process."""
        mine = object()
        if self._arming.setdefault("mark", mine) is not mine:
            return False
        self.armed = self._arm(kind)
        if not self.armed:
            self._arming.clear()
        return self.armed

    def newest(self) -> Mark:
        """The last mark of the training thread."""
        try:
            return self.ring[-1]
        except IndexError:
            return self.last

    def rest(self) -> None:
        """Let the hooks of every step pass by."""
        self.rested = 0
        self.resting = True

    def wake(self) -> None:
        """Mark again, and say how much has passed. Called by the publisher: an append is atomic."""
        if self.resting:
            self.resting = False
            self.put((self.number(), marks.RESTED, self.now_ns(), self.rested))

    def lose_owner(self) -> None:
        """The training thread has ended: the next to mark is another. Called by the publisher."""
        self.owner = 0
        self.put((self.number(), marks.TRAINER_GONE, self.now_ns(), None))

    def stop(self) -> None:
        """Take no marks any more."""
        self.on = False
        self.owner = 0
        self.stamp = self.glance = None

    def forget(self) -> None:
        """Start over, as a forked child must: what was recorded is the parent's."""
        self.armed = self.watched = self.trained = self.resting = False
        self.owner = 0
        self.stamp = self.glance = None
        self._arming.clear()
        self.ring.clear()

    def _may_be_taken_over(self) -> bool:
        """Whether a backward on another thread makes that one the training thread.

        A thread that only fetched was a prefetcher. One that has trained is left alone unless it
        fell silent; a backward inside an open backward is reentrant checkpointing.
        """
        _, kind, t_ns, _ = self.newest()
        if kind == marks.BACKWARD_ENTER:
            return False
        return not self.trained or self.now_ns() - t_ns > OWNER_SILENT_NS
