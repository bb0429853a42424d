"""What was said over a run, as immutable values."""

from dataclasses import dataclass

from tui.verdict.findings import Kind


@dataclass(frozen=True, slots=True)
class Said:
    """One verdict over the time it held. Times are the windows' (the monitor's perf_counter_ns)."""

    kind: Kind
    sub: str | None
    since_ns: int
    until_ns: int
    since_step: int
    until_step: int
    share: float | None
    """Part of the steps that the cause held, 0 to 1: the mean over this time."""
    speedup: float | None
    """What removing it would have given: the mean over this time."""
    headline: str
    """As it was said last."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What was said, oldest first, one after the other."""

    said: tuple[Said, ...]
    dropped: int
    """Older entries that are no longer kept."""


@dataclass(frozen=True, slots=True)
class Held:
    """All the time for which one thing was said."""

    kind: Kind
    sub: str | None
    share_of_time: float
    """Of all the time that was judged, 0 to 1."""
    ns: int
    cost_ns: int | None
    """What the cause cost in that time: its share of each moment, added up. None without one."""


NOTHING_SAID = Timeline((), 0)
