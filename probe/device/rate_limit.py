"""How many steps may be marked on the device: a token bucket of host time bounds their cost.

The publisher's side of the device marks. It touches no device: it asks torch whether the program
has begun to use one, grants steps, and takes what the training thread reports.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ..peers import PPM
from ..recorder import Recorder
from .events import Events, find_events
from .stamper import Report, Stamper

MOST_PPM: Final = 20_000
"""Of what a monitor may ask for."""
STAMPED_S: Final = 50
"""Steps a second that are stamped at most, while that delays the host: 500 make a window of ten
seconds, and each costs the publisher 30 us besides."""
BEHIND_NS: Final = 1_000_000
BEHIND_SHARE: Final = 0.02
"""A device that is this far behind does not wait for the host: then its marks delay nothing, and
may take this part of the host's time."""
GUESSED_NS: Final = 80_000
"""Cost of a stamped step before one was measured."""
BURST_STEPS: Final = 3
"""Steps stamped in a row: to begin and to end costs something too."""
KEPT_STEPS: Final = 6
"""Unspent tokens that are kept, in stamped steps: a pause must not be followed by a long burst."""
SMOOTHING: Final = 0.25
"""Weight of the newest turn in the published cost."""
NEAR_NS: Final = 30_000
NEAR_SHARE: Final = 0.002
"""Marks closer than both share one event: 0.2 points of a step, below what is promised."""
FIND_NS: Final = 500_000_000
UNWATCHED_NS: Final = 1_000_000_000
"""Nobody looks: one step a second, so that a monitor that comes finds some."""


class TokenBucket:
    """Tokens are ns of host time: earned with the time that passes, spent on stamped steps."""

    def __init__(self) -> None:
        self.cost_ns = GUESSED_NS
        """Smoothed cost of one stamped step, with the reading of another."""
        self._tokens_ns = KEPT_STEPS * GUESSED_NS

    def spend(self, spent_ns: int, stamped: int) -> None:
        """So much was spent since the last call, on so many complete steps. No more is owed than is
        kept at the most: what was granted while the device was behind has delayed nothing, and
        would else be paid back without one stamped step for seconds (5 s were seen on an H200)."""
        if stamped:
            self.cost_ns += round(SMOOTHING * (spent_ns // stamped - self.cost_ns))
        self._tokens_ns = max(self._tokens_ns - spent_ns, -KEPT_STEPS * self.cost_ns)

    def earn(self, turn_ns: int, ppm: int, behind_ns: int) -> None:
        """So much time passed, of which such a part may be spent, with the device so far behind the
        host."""
        if behind_ns >= BEHIND_NS:
            earned_ns = round(BEHIND_SHARE * turn_ns)
        else:
            most_ns = STAMPED_S * self.cost_ns * turn_ns // 1_000_000_000
            earned_ns = min(turn_ns * min(ppm, MOST_PPM) // 1_000_000, most_ns)
        self._tokens_ns = min(self._tokens_ns + earned_ns, self._most_ns(earned_ns))

    def affordable(self) -> int:
        """Steps that may be stamped now; 0 while there are not enough for a burst."""
        steps = self._tokens_ns // max(1, self.cost_ns)
        return steps if steps >= BURST_STEPS else 0

    def _most_ns(self, earned_ns: int) -> int:
        return max(KEPT_STEPS * self.cost_ns, 2 * earned_ns)


def near_ns(step_ns: int) -> int:
    """How soon after another a mark may share its event, in a run of such steps."""
    return min(NEAR_NS, round(NEAR_SHARE * step_ns))


class RateLimiter:
    """One process's device marks, from the first use of an accelerator on."""

    def __init__(
        self,
        recorder: Recorder,
        find: Callable[[], Events | None] = find_events,
    ) -> None:
        self._recorder = recorder
        self._find = find
        self._bucket = TokenBucket()
        self._next_ns = 0
        self._turned_ns = 0
        self._steps = 0
        self._spent: tuple[int, int] = (0, 0)
        """(spent_ns, stamped) of the stamper at the last turn."""
        self.stamper: Stamper | None = None
        """None until an accelerator is in use."""

    @property
    def cost_ns(self) -> int:
        """Measured cost of one stamped step."""
        return self._bucket.cost_ns

    def turn(self, now_ns: int, steps: int, behind_ns: int, ppm: int = PPM) -> None:
        """Grant what the bucket allows until the next turn: `steps` were completed by now, the
        device was so far behind the host at the last step that is known, and such a part of the
        time may be spent."""
        stamper = self.stamper
        if stamper is None:
            if now_ns < self._next_ns:
                return
            self._next_ns = now_ns + FIND_NS
            events = self._find()
            if events is None:
                return
            self.stamper = stamper = Stamper(self._recorder, events)
            self._next_ns, self._turned_ns, self._steps = 0, now_ns, steps
        self._account(stamper, now_ns, steps, behind_ns, ppm)
        if not self._recorder.on:
            return
        if self._recorder.watched:
            if granted := self._bucket.affordable():
                stamper.grant(granted)
        elif now_ns >= self._next_ns:
            self._next_ns = now_ns + UNWATCHED_NS
            stamper.grant(1)

    def reports(self) -> Iterator[Report]:
        """What the training thread has reported since the last call."""
        if self.stamper is None:
            return
        reports = self.stamper.reports
        while reports:
            yield reports.popleft()

    def _account(self, stamper: Stamper, now_ns: int, steps: int, behind_ns: int, ppm: int) -> None:
        spent_ns, stamped = stamper.spent_ns, stamper.stamped
        self._bucket.spend(spent_ns - self._spent[0], stamped - self._spent[1])
        self._spent = spent_ns, stamped
        passed_ns, completed = now_ns - self._turned_ns, steps - self._steps
        self._turned_ns, self._steps = now_ns, steps
        self._bucket.earn(passed_ns, ppm, behind_ns)
        if completed > 0:
            stamper.near_ns = near_ns(passed_ns // completed)
