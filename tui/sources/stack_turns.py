"""Whose stacks are sampled next, and when: within a share of a core.

What two seconds of py-spy cost, in ms of CPU (two cores, 82 processes on the machine):

    the training process with 0, 1, 4, 8 workers, together: 68, 100, 270, 440
    the training process alone: 30 to 40
    one worker alone: 32 to 36

Together is dear: py-spy looks for new children ten times a second, in every process of the machine.
So once the verdict is there, a probed run's main thread and its workers are looked at in turns, one
process at a time. That costs the same however many workers there are.

Big processes are dearer, and a turn is put off for so long at most that the rules keep the samples
that they need. So the share is not kept there: by these figures it is 1.5 % of a core where a turn
costs 4 times as much, 3 % at 8 times and 6 % at 16 times.
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
MAIN_NS: Final = 17_000_000_000
"""Between two turns of the main thread at most, whatever they cost. With a worker's turn that runs
by then it is less than 20 s: so three chunks of 19 samples lie in any minute."""
WORKER_NS: Final = 25_000_000_000
"""The same for the workers: two chunks, as one alone is below what the rules need."""


class Turns:
    """Keeps the accounts."""

    def __init__(self, alone: bool) -> None:
        """`alone`: no probe tells of the main thread."""
        share = ALONE_BUDGET if alone else BUDGET
        self._alone = alone
        self._eager = EAGER
        self._last: Turn = "all"
        self._main_ns: int | None = None
        self._worker_ns: int | None = None
        """When their last turns began, also as one of all."""
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
        if self._apart.is_due(now_ns):
            return "main" if self._alone or self._last == "worker" else "worker"
        if self._main_ns is not None and now_ns - self._main_ns >= MAIN_NS:
            return "main"
        waits = self._worker_ns is not None and now_ns - self._worker_ns >= WORKER_NS
        return "worker" if waits and not self._alone else None

    def took(self, turn: Turn, started_ns: int, cpu_s: float, *, nobody_else: bool = False) -> None:
        """A turn is over: when it began, and what it and reading it cost. `nobody_else`: it was a
        worker's, and there is none."""
        if turn != "worker":
            self._main_ns = started_ns
        if turn != "main" or nobody_else:
            self._worker_ns = started_ns
        if self._eager:
            self._eager -= 1
            return
        account = self._together if turn == "all" else self._apart
        account.read(started_ns, round(cpu_s * 1e9))
        if turn != "all":
            self._last = turn
