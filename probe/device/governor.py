"""The publisher's side of the device marks: finds the accelerator, grants steps, takes what came.

Touches no device: it asks torch whether the program has begun to use one, and that is all.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ..recorder import Recorder
from .budget import PPM, Budget, near_ns
from .events import Events, find_events
from .reports import Report
from .stamper import Stamper

FIND_NS: Final = 500_000_000
UNWATCHED_NS: Final = 1_000_000_000
"""Nobody looks: one step a second, so that a monitor that comes finds some."""


class Governor:
    """One process's device marks, from the first use of an accelerator on."""

    def __init__(
        self,
        recorder: Recorder,
        find: Callable[[], Events | None] = find_events,
    ) -> None:
        self._recorder = recorder
        self._find = find
        self._budget = Budget()
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
        return self._budget.cost_ns

    def turn(self, now_ns: int, steps: int, behind_ns: int, ppm: int = PPM) -> None:
        """Grant what the budget allows until the next turn: `steps` were completed by now, the
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
            if granted := self._budget.affordable():
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
        self._budget.spend(spent_ns - self._spent[0], stamped - self._spent[1])
        self._spent = spent_ns, stamped
        passed_ns, completed = now_ns - self._turned_ns, steps - self._steps
        self._turned_ns, self._steps = now_ns, steps
        self._budget.earn(passed_ns, ppm, behind_ns)
        if completed > 0:
            stamper.near_ns = near_ns(passed_ns // completed)
