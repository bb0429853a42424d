"""Asks the verdict engine once a second, and says what changed."""

from collections.abc import Callable
from typing import Final, Protocol

from ..model.snapshot import NOT_YET
from ..verdict.findings import Verdict
from ..verdict.history import NO_HISTORY, Held, VerdictTimeline
from ..verdict.memory.trends import MemoryTrend
from ..verdict.window import Window
from ..wording.words import name_of

EVERY_NS: Final = 1_000_000_000
"""A verdict is a mean over many steps; asking more often only costs."""
EARLY_NS: Final = 250_000_000
"""Between the first step and the first verdict: steps of 10 ms make 100 of them in a second."""


class Engine(Protocol):
    """What `tui.verdict.engine.Engine` does: it remembers its verdicts, for its hysteresis."""

    def judge(self, window: Window) -> Verdict:
        """The verdict on one window."""

    def timeline(self) -> VerdictTimeline:
        """The verdicts until the last window."""

    def summary(self) -> tuple[Held, ...]:
        """The same by the time that each held."""

    def trends(self) -> tuple[MemoryTrend, ...]:
        """Of the memories that grow, as of the last window."""


Annotate = Callable[[Verdict], Verdict]
"""Adds notes to a verdict before anybody sees it."""


class Judge:
    """The last verdict, and those before."""

    def __init__(self, engine: Engine, annotate: Annotate | None = None) -> None:
        self._engine = engine
        self._annotate = annotate
        self._next_ns = 0
        self._begun = False
        """There were steps."""
        self._closed = False
        """The run has ended and been judged."""
        self.verdict = NOT_YET
        self.timeline = NO_HISTORY
        self.summary: tuple[Held, ...] = ()
        self.trends: tuple[MemoryTrend, ...] = ()

    def due(self, now_ns: int, ended: bool, steps: int) -> bool:
        """Whether it is time to judge. The first steps are judged as they come: a monitor that
        attaches gets those of before. A run that has ended is judged once more."""
        if ended:
            due, self._closed = not self._closed, True
            return due
        begins, self._begun = steps > 0 and not self._begun, steps > 0
        return begins or now_ns >= self._next_ns

    def judge(self, window: Window) -> str | None:
        """Judge; returns the text of an event when the verdict has become another one."""
        before, verdict = self.verdict.finding, self._engine.judge(window)
        self.verdict = verdict if self._annotate is None else self._annotate(verdict)
        after = self.verdict.finding
        self._schedule(window.now_ns, after.kind == "warming-up" and window.steps_seen > 0)
        self.timeline, self.summary = self._engine.timeline(), self._engine.summary()
        self.trends = self._engine.trends()
        if (before.kind, before.sub) == (after.kind, after.sub):
            return None
        is_now, was = (name_of(one.kind, one.sub) for one in (after, before))
        return f"verdict: {is_now} (was {was})"

    def _schedule(self, now_ns: int, early: bool) -> None:
        """A turn of the collector that came late does not delay the next: a second stays one."""
        every_ns = EARLY_NS if early else EVERY_NS
        late_ns = now_ns - self._next_ns
        self._next_ns = now_ns + every_ns - (late_ns if 0 <= late_ns < EARLY_NS else 0)

    @property
    def memory_grows(self) -> bool:
        """Whether memory growth is among the findings."""
        found = (self.verdict.finding, *self.verdict.contributors)
        return any(finding.kind == "memory-growth" for finding in found)
