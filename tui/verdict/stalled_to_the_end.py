"""A run that hung, and was ended: that it hung is the last word on it."""

from dataclasses import replace

from tui.verdict.findings import Finding
from tui.verdict.rules.stalled import stalled
from tui.verdict.window import Window

_AFTER_THE_LOOP = ("other", "evaluation", "checkpoint")
"""Phases in which a run that leaves in order may have had its last work to do."""


def ended_stalled(before: Finding, window: Window) -> Finding | None:
    """`before`, what was said last, of a run that has ended; None where that was no stall, or the
    run may only have come to its end."""
    if not window.ended or before.kind != "stalled":
        return None
    now = window.open_step
    if not window.killed and (now is None or now.phase in _AFTER_THE_LOOP):
        return None
    hung = stalled(replace(window, ended=False)) or before
    end = ", then killed" if window.killed else ", then it ended"
    return replace(hung, headline=hung.headline.removesuffix(end) + end)
