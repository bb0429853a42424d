"""Asks the verdict engine, at most once a second, and tells what changed."""

from typing import Final, Protocol

from tui.verdict.findings import Finding, Verdict
from tui.verdict.window import Window

EVERY_NS: Final = 1_000_000_000
"""A verdict is a mean over many steps; asking more often only costs."""


class Engine(Protocol):
    """What `tui.verdict.engine.Engine` does: it remembers what it said, for its hysteresis."""

    def judge(self, window: Window) -> Verdict:
        """The verdict on one window."""


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
    """The last verdict."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._next_ns = 0
        self._closed = False
        """The run has ended and been judged."""
        self.verdict = NOT_YET

    def due(self, now_ns: int, ended: bool) -> bool:
        """Whether it is time to look again. A run that has ended is looked at once more."""
        if ended:
            due, self._closed = not self._closed, True
            return due
        return now_ns >= self._next_ns

    def look(self, window: Window) -> str | None:
        """Judge; returns what to say when the verdict has become another one."""
        self._next_ns = window.now_ns + EVERY_NS
        before, self.verdict = self.verdict.finding, self._engine.judge(window)
        after = self.verdict.finding
        if (before.kind, before.sub) == (after.kind, after.sub):
            return None
        return f"verdict: {name_of(after)} (was {name_of(before)})"

    @property
    def memory_grows(self) -> bool:
        """Whether memory growth is among the findings."""
        found = (self.verdict.finding, *self.verdict.contributors)
        return any(finding.kind == "memory-growth" for finding in found)


def name_of(finding: Finding) -> str:
    """ "input/workers"."""
    return f"{finding.kind}/{finding.sub}" if finding.sub else finding.kind
