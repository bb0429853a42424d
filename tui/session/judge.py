"""Asks the verdict engine, at most once a second, and tells what changed."""

from typing import Final, Protocol

from ..verdict.findings import Finding, Verdict
from ..verdict.history import NO_HISTORY, Held, VerdictTimeline
from ..verdict.memory.trends import MemoryTrend
from ..verdict.window import Window
from ..wording.words import name_of

EVERY_NS: Final = 1_000_000_000
"""A verdict is a mean over many steps; asking more often only costs."""
EARLY_NS: Final = 250_000_000
"""Between the first step and the first verdict: steps of 10 ms make 100 of them in a second."""


class Engine(Protocol):
    """What `tui.verdict.engine.Engine` does: it remembers what it said, for its hysteresis."""

    def judge(self, window: Window) -> Verdict:
        """The verdict on one window."""

    def timeline(self) -> VerdictTimeline:
        """What was said until the last window."""

    def summary(self) -> tuple[Held, ...]:
        """The same by the time that each thing was said."""

    def trends(self) -> tuple[MemoryTrend, ...]:
        """Of the memories that grow, as of the last window."""


NOT_YET: Final = Verdict(
    finding=Finding(
        kind="warming-up",
        sub=None,
        severity="info",
        share=None,
        share_low=None,
        share_high=None,
        speedup=None,
        speedup_is=None,
        headline="nothing heard from the process yet",
        evidence=(),
        advice=(),
    ),
    confidence=0.0,
    since_step=None,
    since_ns=None,
    contributors=(),
    missing=(),
)
"""Before the first look."""


class Judge:
    """The last verdict, and those before."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._next_ns = 0
        self._closed = False
        """The run has ended and been judged."""
        self.verdict = NOT_YET
        self.timeline = NO_HISTORY
        self.summary: tuple[Held, ...] = ()
        self.trends: tuple[MemoryTrend, ...] = ()

    def due(self, now_ns: int, ended: bool) -> bool:
        """Whether it is time to look again. A run that has ended is looked at once more."""
        if ended:
            due, self._closed = not self._closed, True
            return due
        return now_ns >= self._next_ns

    def look(self, window: Window) -> str | None:
        """Judge; returns what to say when the verdict has become another one."""
        before, self.verdict = self.verdict.finding, self._engine.judge(window)
        early = self.verdict.finding.kind == "warming-up" and window.steps_seen > 0
        self._next_ns = window.now_ns + (EARLY_NS if early else EVERY_NS)
        self.timeline, self.summary = self._engine.timeline(), self._engine.summary()
        self.trends = self._engine.trends()
        after = self.verdict.finding
        if (before.kind, before.sub) == (after.kind, after.sub):
            return None
        is_now, was = (name_of(one.kind, one.sub) for one in (after, before))
        return f"verdict: {is_now} (was {was})"

    @property
    def memory_grows(self) -> bool:
        """Whether memory growth is among the findings."""
        found = (self.verdict.finding, *self.verdict.contributors)
        return any(finding.kind == "memory-growth" for finding in found)
