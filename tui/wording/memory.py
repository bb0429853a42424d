"""Memory in words: how fast it grows, when it is full, and who holds it."""

from collections.abc import Sequence
from math import isfinite
from typing import Final

from tui.snapshot import Snapshot
from tui.verdict.exhaustion import Exhaustion, time_left
from tui.verdict.findings import Finding
from tui.verdict.memory_trend import MemoryTrend, Whose
from tui.wording.numbers import count

DAY_HOURS: Final = 24.0
SPANS: Final = 20
"""A line is drawn on to the end of the memory within a day, or within this many times what it was
seen over: further off says nothing."""
ENOUGH_NS: Final = 30 * 10**9
"""No growth over this long is an answer; over less it is not known yet."""
_MIB: Final = 1024 * 1024
_GLYPHS: Final = {"leak": "▲", "growth": "◆"}
_WORDS: Final = {"leak": "leak", "growth": "grows"}


def trend_of(snapshot: Snapshot, whose: Whose) -> MemoryTrend | None:
    """The trend of one memory; None where it does not grow."""
    return next((trend for trend in snapshot.trends if trend.whose == whose), None)


def trend_words(trend: MemoryTrend) -> tuple[str, str, str]:
    """Glyph, word and role: "▲ leak", "◆ grows", "● rises" while it is not said yet."""
    if trend.said is None:
        return "●", "rises", "info"
    sub = trend.said.sub or "growth"
    return _GLYPHS[sub], _WORDS[sub], trend.said.severity


def standing_words(
    snapshot: Snapshot, trend: MemoryTrend | None, known_ns: int
) -> tuple[str, str, str]:
    """Those of a trend; without one "● steady", "○ too early" where little is known by now, "○ no
    steps" where there are none to judge it by."""
    if trend is not None:
        return trend_words(trend)
    if snapshot.steps is None and snapshot.sampled is None:
        return "○", "no steps", "dim"
    if known_ns < ENOUGH_NS or snapshot.verdict.finding.kind == "warming-up":
        return "○", "too early", "dim"
    return "●", "steady", "good"


def interval_words(trend: MemoryTrend) -> str:
    """Of 100 steps, with the 95 % interval: "+38 MiB (36 to 41)"."""
    slope = trend.slope
    low, middle, high = (100 * part / _MIB for part in (slope.low, slope.middle, slope.high))
    places = 0 if abs(middle) >= 10 else 1
    ends = [f"{end:,.{places}f}" for end in (low, high)]
    if ends[0] == ends[1]:
        return f"{middle:+,.{places}f} MiB"
    return f"{middle:+,.{places}f} MiB ({ends[0]} to {ends[1]})"


def full_words(trend: MemoryTrend) -> str:
    """ "3 to 4 h", "> 24 h", "3 h at the earliest"; "" while growth is not said yet, or its
    limit is not known. A range, by both ends of the slope's interval; with a "~" while it may still
    be a cache that fills."""
    left = trend.left
    if left is None or trend.said is None:
        return ""
    hours = left.earliest_steps * left.step_hours
    if hours > DAY_HOURS and left.earliest_steps > SPANS * trend.steps:
        return "> 24 h"
    about = "" if trend.said.sub == "leak" else "~"
    return about + _left_words(left)


def _left_words(left: Exhaustion) -> str:
    if not left.step_hours:
        first, last = count(round(left.earliest_steps)), left.latest_steps
        return f"{first} to {count(round(last))} steps" if isfinite(last) else f"≥ {first} steps"
    return time_left(left)


def full_note(trend: MemoryTrend) -> str:
    """The same in a sentence: "full in 3 to 4 h", "> 24 h to full"."""
    words = full_words(trend)
    if not words:
        return ""
    return f"{words} to full" if words.startswith(">") else f"full in {words}"


def findings_on(snapshot: Snapshot) -> Sequence[Finding]:
    """What the verdict says of memory, the first first."""
    said = (snapshot.verdict.finding, *snapshot.verdict.contributors)
    return [finding for finding in said if finding.kind == "memory-growth"]
