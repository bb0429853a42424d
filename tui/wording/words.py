"""What the kinds of verdict and the states are called on the screen: a glyph, a word, a role."""

from typing import Final

from tui.verdict.figures import times
from tui.verdict.findings import Finding, Kind

WORDS: Final = {
    "warming-up": "WARMING UP",
    "incomplete": "INCOMPLETE DATA",
    "stalled": "STALLED",
    "healthy": "NOTHING WRONG",
    "input": "INPUT-BOUND",
    "h2d": "COPY-BOUND",
    "communication": "COMMUNICATION-BOUND",
    "launch": "LAUNCH-BOUND",
    "sync": "SYNC-BOUND",
    "compute": "COMPUTE-BOUND",
    "memory-bandwidth": "BANDWIDTH-BOUND",
    "optimizer": "OPTIMIZER-BOUND",
    "host": "HOST-BOUND",
    "checkpoint": "CHECKPOINTING",
    "evaluation": "EVALUATING",
    "recompile": "RECOMPILING",
    "allocator": "ALLOCATOR-BOUND",
    "straggler": "STRAGGLER",
    "contention": "CONTENTION",
    "throttled": "THROTTLED",
    "memory-growth": "MEMORY GROWS",
}
ABSTAINS: Final = ("warming-up", "incomplete")
"""Kinds that are no verdict."""
_GLYPHS: Final = {"critical": "▲", "warning": "◆", "info": "●"}


def name_of(kind: Kind, sub: str | None) -> str:
    """ "input/workers"."""
    return f"{kind}/{sub}" if sub else kind


def abstains(finding: Finding) -> bool:
    """It is not a verdict: severity and confidence would say nothing."""
    return finding.kind in ABSTAINS


def glyph_of(finding: Finding) -> str:
    """Severity as a shape."""
    return "○" if abstains(finding) else _GLYPHS[finding.severity]


def role_of(finding: Finding) -> str:
    """Severity as a colour."""
    if abstains(finding):
        return "strong"
    return "good" if finding.kind == "healthy" else finding.severity


def gain_of(finding: Finding) -> str:
    """ "≤ 2.3x faster" for a bound, "~2.3x faster" for an estimate, "" where nobody can say.

    Also "" where the advice states its own gain: removing the whole cause would give more than the
    action that stands there, and two numbers side by side read as a contradiction.
    """
    if finding.speedup is None or finding.speedup < 1.005:
        return ""
    if finding.advice and "at best" in finding.advice[0]:
        return ""
    text = times(finding.speedup)
    return f"≤ {text} faster" if finding.speedup_is == "bound" else f"~{text} faster"
