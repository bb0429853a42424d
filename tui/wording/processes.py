"""Memory and processes in words: growth and time to full; states, cores, what blocks a process."""

from collections.abc import Sequence
from math import isfinite
from typing import Final

from ..model.observations import ProcessUse
from ..model.snapshot import Snapshot
from ..verdict.findings import Finding
from ..verdict.memory.trends import Exhaustion, MemoryTrend, Whose, time_left
from .numbers import count, percent

DAY_HOURS: Final = 24.0
SPANS: Final = 20
"""A trend is extended to the end of the memory within a day, or within this many times the steps it
was seen over: further off is no forecast."""
ENOUGH_NS: Final = 30 * 10**9
"""Memory that did not grow for so long is steady; over less time it is not known yet."""
_MIB: Final = 1024 * 1024
_GLYPHS: Final = {"leak": "▲", "growth": "◆"}
_WORDS: Final = {"leak": "leak", "growth": "grows"}


def trend_of(snapshot: Snapshot, whose: Whose) -> MemoryTrend | None:
    """The trend of one memory; None where it does not grow."""
    return next((trend for trend in snapshot.trends if trend.whose == whose), None)


def trend_words(trend: MemoryTrend) -> tuple[str, str, str]:
    """Glyph, word and role: "▲ leak", "◆ grows", "● rises" while no verdict names it yet."""
    if trend.finding is None:
        return "●", "rises", "info"
    sub = trend.finding.sub or "growth"
    return _GLYPHS[sub], _WORDS[sub], trend.finding.severity


def memory_state_words(
    snapshot: Snapshot, trend: MemoryTrend | None, known_ns: int
) -> tuple[str, str, str]:
    """Glyph, word and role of a trend; without one "● steady", "○ needs more steps", or "○ no
    steps" where there are none to judge it by."""
    if trend is not None:
        return trend_words(trend)
    if snapshot.steps is None and snapshot.sampled is None:
        return "○", "no steps", "dim"
    if known_ns < ENOUGH_NS or snapshot.verdict.finding.kind == "warming-up":
        return "○", "needs more steps" if snapshot.sampled is None else "needs more time", "dim"
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
    """ "3 to 4 h", "> 24 h", "3 h at the earliest": a range, by both ends of the slope's interval,
    with a "~" while it may still be a cache that fills. "" before a verdict names the growth, or
    where the limit is not known."""
    left = trend.left
    if left is None or trend.finding is None:
        return ""
    hours = left.earliest_steps * left.step_hours
    if hours > DAY_HOURS and left.earliest_steps > SPANS * trend.steps:
        return "> 24 h"
    about = "" if trend.finding.sub == "leak" else "~"
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
    """The verdict's findings on memory, most important first."""
    findings = (snapshot.verdict.finding, *snapshot.verdict.contributors)
    return [finding for finding in findings if finding.kind == "memory-growth"]


STATES: Final = {
    "R": "running",
    "S": "sleeping",
    "D": "disk wait",
    "T": "stopped",
    "Z": "zombie",
    "?": "unknown",
}
ON_CPU: Final = 50.0
"""Percent of a core from which a process counts as on CPU, whatever its state at that instant."""
WAITS_FROM: Final = 10.0
"""Percent of the time that a thread was ready and had no core, from which that is shown."""
LEAST_PERCENT: Final = 1.0
"""Less is not worth a word in a heading."""


def state_of(use: ProcessUse, with_delay: bool = True) -> tuple[str, str]:
    """Words and their role: "disk wait", "no core 34%" unless shown elsewhere, "on CPU"."""
    delay = use.run_delay_percent
    if use.status == "D":
        return STATES["D"], "warning"
    if with_delay and delay is not None and delay >= WAITS_FROM:
        return f"no core {delay:.0f}%", "warning"
    if use.status in "RS" and use.cpu_percent is not None:
        return "on CPU" if use.cpu_percent >= ON_CPU else STATES["S"], "dim"
    return STATES.get(use.status, use.status), "warning" if use.status in "TZ" else "dim"


def cores_words(snapshot: Snapshot) -> list[str]:
    """ "5.4 of 16 cores used", "quota throttled 12%", "others 0.2", "35% busy": of the cores that
    the target may use, over the last second."""
    words: list[str] = []
    used = cores_used(snapshot.processes)
    if snapshot.cores is not None:
        of = f"of {snapshot.cores:g} cores"
        words.append(of if used is None else f"{used:.1f} {of} used")
    around = snapshot.surroundings
    if around is None:
        return words
    if around.throttled_percent is not None and around.throttled_percent >= LEAST_PERCENT:
        words.append(f"quota throttled {around.throttled_percent:.0f}%")
    if around.others_percent is not None:
        words.append(f"others {around.others_percent / 100:.1f}")
    if around.busy_percent is not None:
        words.append(f"{percent(around.busy_percent / 100)} busy")
    return words


def cores_used(processes: Sequence[ProcessUse]) -> float | None:
    """By the target, its workers and its other children; None at the first reading."""
    known = [one.cpu_percent for one in processes if one.cpu_percent is not None]
    return sum(known) / 100 if known else None
