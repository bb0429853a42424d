"""Whose stacks are sampled next, and when: within a share of a core.

What two seconds of py-spy cost, in ms of CPU (two cores, 82 processes on the machine):

    the training process with 0, 1, 4, 8 workers, together: 68, 100, 270, 440
    the training process alone: 30 to 40
    one worker alone: 32 to 36

Together is dear: py-spy looks for new children ten times a second, in every process of the machine.
So once the verdict is there, a probed run's main thread and its workers are looked at in turns, one
process at a time. That costs the same however many workers there are.
"""

from typing import Final, Literal

from tui.sources.pacing import Pace

Turn = Literal["all", "main", "worker"]
"""Every process of the training, its main process, or one of its workers."""

EAGER: Final = 3
"""The first chunks are of all, follow one another at once and are on no account: a verdict is
wanted within ten seconds, and a watch begins once."""
BUDGET: Final = 0.008
"""Of a core, for the turns; measured over a minute with four and with eight workers: 0.8 % (the bar
is 1 %). That is a turn every 4.5 s: 120 samples a minute of the main thread, and as many of the
workers. The rules speak from 20 in the last minute."""
ALONE_BUDGET: Final = 0.02
"""Without a probe samples are all there is: so much for chunks of all, and as much for those of the
main process between them. Of the two the second is not used up, as one chunk follows the other:
together they take 2.8 % with four workers."""


class Turns:
    """Keeps the accounts."""

    def __init__(self, alone: bool) -> None:
        """`alone`: no probe tells of the main thread."""
        share = ALONE_BUDGET if alone else BUDGET
        self._alone = alone
        self._eager = EAGER
        self._last: Turn = "all"
        self._together = Pace(0, share)
        """Of a probed run, only where it stands still: all workers at one moment are wanted then,
        and this is not the steady state that the budget is for."""
        self._apart = Pace(0, share)

    def due(self, now_ns: int, stands_still: bool) -> Turn | None:
        """Whose turn it is now; None when it is nobody's."""
        if self._eager:
            return "all"
        if (self._alone or stands_still) and self._together.is_due(now_ns):
            return "all"
        if not self._apart.is_due(now_ns):
            return None
        return "main" if self._alone or self._last == "worker" else "worker"

    def took(self, turn: Turn, started_ns: int, cpu_s: float) -> None:
        """A turn is over: when it began, and what it and reading it cost."""
        if self._eager:
            self._eager -= 1
            return
        account = self._together if turn == "all" else self._apart
        account.read(started_ns, round(cpu_s * 1e9))
        if turn != "all":
            self._last = turn
