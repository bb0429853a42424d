"""A process in words: its state, and what keeps it from running."""

from collections.abc import Sequence
from typing import Final

from tui.observations import ProcessUse
from tui.snapshot import Snapshot
from tui.wording.numbers import percent

STATES: Final = {
    "R": "running",
    "S": "sleeping",
    "D": "disk wait",
    "T": "stopped",
    "Z": "zombie",
    "?": "unknown",
}
ON_CPU: Final = 50.0
"""Percent of a core from which a process is said to be on it: its state at the instant of the look
may be another."""
WAITS_FROM: Final = 10.0
"""A thread that was ready this percent of the time and had no core is told so."""
LEAST_PERCENT: Final = 1.0
"""What is less is not worth a word in a heading."""


def state_of(use: ProcessUse, with_delay: bool = True) -> tuple[str, str]:
    """Words and their role: "disk wait", "no core 34%" unless that stands elsewhere, "on CPU"."""
    delay = use.run_delay_percent
    if use.status == "D":
        return STATES["D"], "warning"
    if with_delay and delay is not None and delay >= WAITS_FROM:
        return f"no core {delay:.0f}%", "warning"
    if use.status in "RS" and use.cpu_percent is not None:
        return "on CPU" if use.cpu_percent >= ON_CPU else STATES["S"], "dim"
    return STATES.get(use.status, use.status), "warning" if use.status in "TZ" else "dim"


def cores_words(snapshot: Snapshot) -> list[str]:
    """ "5.4 of 16 cores used", "35% busy", "others 0.2", "quota held back 12%": of the cores that
    the target may use, over the second before the last look."""
    words: list[str] = []
    used = cores_used(snapshot.processes)
    if snapshot.cores is not None:
        of = f"of {snapshot.cores:g} cores"
        words.append(of if used is None else f"{used:.1f} {of} used")
    around = snapshot.surroundings
    if around is None:
        return words
    if around.throttled_percent is not None and around.throttled_percent >= LEAST_PERCENT:
        words.append(f"quota held it back {around.throttled_percent:.0f}%")
    if around.others_percent is not None:
        words.append(f"others {around.others_percent / 100:.1f}")
    if around.busy_percent is not None:
        words.append(f"{percent(around.busy_percent / 100)} busy")
    return words


def cores_used(processes: Sequence[ProcessUse]) -> float | None:
    """By the target, its workers and its other children; None in the first look."""
    told = [one.cpu_percent for one in processes if one.cpu_percent is not None]
    return sum(told) / 100 if told else None
