"""The clock of another machine, laid on ours by round trips."""

from collections import deque
from typing import Final, NamedTuple

from .. import clock as real_clock
from ..session.collector import Clock

HOLD_NS: Final = 1_500_000_000
"""The run's time goes on for so long after the last word of its agent, which speaks four times a
second. Then it stands: a link that says nothing is no silence of the run."""
ROUND_TRIPS: Final = 16
"""Of the last ones, a second apart, the shortest counts: the clocks of two machines drift by 1 ms
in 20 s at the most (50 ppm)."""


class RoundTrip(NamedTuple):
    """One ping and its answer."""

    length_ns: int
    ahead_ns: int
    """The agent's clock less ours, halfway."""
    ahead_unix_s: float
    """Its time of day less ours, halfway."""


class FarClock:
    """The agent's `perf_counter_ns`, as far as it is known here (`session.collector.Clock`).

    Written by the link's thread and read on others: each field is one reference.
    """

    def __init__(self, near: Clock = real_clock) -> None:
        self._near = near
        self._trips: deque[RoundTrip] = deque(maxlen=ROUND_TRIPS)
        self._ahead_ns = 0
        self._reached_ns = 0
        self._latest_ns = 0
        self._runs_free = False
        self.best: RoundTrip | None = None
        """The shortest of the last round trips."""

    def begin(self, far_ns: int) -> None:
        """What it shows at the least, by the first word of the agent."""
        if self.best is None:
            self._ahead_ns = far_ns - self._near.now_ns()
        self.reached(far_ns)

    def reached(self, far_ns: int) -> None:
        """Everything until then has arrived."""
        self._reached_ns = max(self._reached_ns, far_ns)

    def answered(self, sent_ns: int, far_ns: int, far_unix: float) -> None:
        """A ping that was sent at `sent_ns` of our clock has come back now."""
        now_ns = self._near.now_ns()
        length_ns = now_ns - sent_ns
        if length_ns < 0:
            return  # it answers a ping that nobody sent
        halfway_unix = self._near.now_unix() - length_ns / 2e9
        ahead_ns = far_ns - (now_ns - length_ns // 2)
        self._trips.append(RoundTrip(length_ns, ahead_ns, far_unix - halfway_unix))
        self.best = min(self._trips)
        self._ahead_ns = self.best.ahead_ns

    def forget(self) -> None:
        """A new link may lead another way."""
        self._trips.clear()

    def run_free(self) -> None:
        """Nothing more will come: the run has ended."""
        self._runs_free = True

    def now_ns(self) -> int:
        """The run's time: it stands while the link is lost, and never goes back."""
        far_ns = self.free_ns()
        if not self._runs_free:
            far_ns = min(far_ns, self._reached_ns + HOLD_NS)
        self._latest_ns = max(self._latest_ns, far_ns)
        return self._latest_ns

    def free_ns(self) -> int:
        """What the clock over there shows now, whether the link works or not."""
        return self._near.now_ns() + self._ahead_ns

    def now_unix(self) -> float:
        """The time of day, by the clock here: that is the one that a person looks at."""
        return self._near.now_unix()

    def own_cpu_ns(self) -> int:
        """Of the monitor here."""
        return self._near.own_cpu_ns()
