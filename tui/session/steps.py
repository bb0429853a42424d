"""How the phases differ from step to step: worked out once a second, as it sorts every row."""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice
from math import ceil
from operator import attrgetter
from statistics import fmean
from typing import Final, NamedTuple

from ..compare.intervals import ratio_of
from ..model.snapshot import PhaseStats, Rare, Spread
from ..steps import STEP_BOUNDS_S, Step, StepHistogram
from ..timeseries.series import StepEdges
from ..verdict.pauses import spacing_of

# Where the steps began: what the ticks of the pictures over time are drawn from.

HELD: Final = 65_536
"""1 MB: an hour of 18 steps a second. Of faster ones no picture of an hour can show a tick."""


class EdgeStore:
    """Appends; what it gave before stays as it is."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._numbers = array("q")
        self._end_ns = 0

    def ended(self, steps: Sequence[Step]) -> None:
        """Rows of steps that ended, oldest first, each once."""
        if len(self._starts) >= HELD * 5 // 4:
            self._starts, self._numbers = self._starts[-HELD:], self._numbers[-HELD:]
        for step in steps:
            self._starts.append(step.start_ns)
            self._numbers.append(step.number)
            self._end_ns = step.end_ns

    def edges(self) -> StepEdges:
        """All that are held."""
        held = len(self._starts)
        return StepEdges(self._starts, self._numbers, self._end_ns, max(0, held - HELD), held)


# Steps divided into phases: sums over steps, which always add up to the wall time.

START_UP = "loader start-up"
ALWAYS = ("data", "forward", "backward", "optimizer", "other")
"""Shown even when they take nothing: a measured zero is an answer."""
OF_INFERENCE = ("data", "forward", "other")

# Four times a second over all the steps of a window: one sum for each field takes a quarter of what
# a loop over the steps does.
_FIRST: Final = {
    "data": attrgetter("data_ns"),
    START_UP: attrgetter("startup_ns"),
    "forward": attrgetter("forward_ns"),
    "backward": attrgetter("backward_ns"),
    "optimizer": attrgetter("optimizer_ns"),
}
_REST: Final = {
    "other": attrgetter("other_ns"),
    "evaluation": attrgetter("evaluation_ns"),
    "checkpoint": attrgetter("checkpoint_ns"),
    "compile": attrgetter("compile_ns"),
}
_NAMED = attrgetter("phases")
_START_NS, _END_NS = attrgetter("start_ns"), attrgetter("end_ns")


def phase_sums(steps: Sequence[Step]) -> dict[str, int]:
    """ns by phase over `steps`, in the order in which a step passes through them.

    What no phase claims goes to "other", so the sums add up to the steps' wall time.
    """
    sums = {name: sum(map(ns_of, steps)) for name, ns_of in _FIRST.items()}
    named: dict[str, int] = {}
    for phases in filter(None, map(_NAMED, steps)):
        for name, ns in phases.items():
            named[name] = named.get(name, 0) + ns
    rest = {name: sum(map(ns_of, steps)) for name, ns_of in _REST.items()}
    for part in (named, rest):
        for name, ns in part.items():
            sums[name] = sums.get(name, 0) + ns  # a user's phase may bear one of our names
    wall = sum(map(_END_NS, steps)) - sum(map(_START_NS, steps))
    sums["other"] += max(0, wall - sum(sums.values()))
    return sums


def phases_of(
    steps: Sequence[Step], count: int, inference: bool, spreads: Mapping[str, Spread]
) -> tuple[PhaseStats, ...]:
    """The phases of `count` steps, ratio of sums: the shares add up to 1. `spreads` by name."""
    sums = phase_sums(steps)
    total = sum(sums.values())
    always = OF_INFERENCE if inference else ALWAYS
    return tuple(
        PhaseStats(name, ns / count / 1e6, ns / total if total else 0.0, spreads.get(name))
        for name, ns in sums.items()
        if ns or name in always
    )


# The steps a session holds.

HELD_ROWS: Final = 8192
"""About 7 MB. The probe sends at most 500 rows a second: 16 s of the fastest loop, and more than
two hours of steps of one second."""
SHOWN_ROWS: Final = 200
"""`Snapshot.recent`: what a face can draw one by one."""

RECENT_ROWS: Final = 500
"""`Window.all_recent`: room for several checkpoints or evaluations of a run that has them often."""


class StepStore:
    """Rows in time order, each once: a reconnection sends the last minutes again."""

    def __init__(self) -> None:
        self.total = 0
        """Steps since the probe was armed."""
        self._rows: deque[Step] = deque(maxlen=HELD_ROWS)
        self._compiled: deque[Step] = deque(maxlen=RECENT_ROWS)
        self._counts = [0] * (len(STEP_BOUNDS_S) + 1)
        self._sum_ns = 0

    def add(self, steps: Sequence[Step]) -> list[Step]:
        """Take rows; returns those that are new. Distinguished by time: numbers begin again when a
        program uninstalls the probe and installs it once more."""
        fresh: list[Step] = []
        newest_ns = self._rows[-1].end_ns if self._rows else 0
        for step in steps:
            if step.start_ns < newest_ns or step.count < 1 or step.end_ns < step.start_ns:
                continue
            newest_ns = step.end_ns
            fresh.append(step)
            if step.compile_ns:
                self._compiled.append(step)
            wall_ns = step.end_ns - step.start_ns
            self._counts[bisect_left(STEP_BOUNDS_S, wall_ns / step.count / 1e9)] += step.count
            self._sum_ns += wall_ns
        self._rows.extend(fresh)
        if fresh:
            self.total = fresh[-1].number
        return fresh

    @property
    def histogram(self) -> StepHistogram:
        """How long all of them took that came since the monitor attached."""
        return StepHistogram(tuple(self._counts), self._sum_ns / 1e9)

    @property
    def newest(self) -> Step | None:
        """The last step that ended."""
        return self._rows[-1] if self._rows else None

    def last(self, rows: int) -> tuple[Step, ...]:
        """The newest `rows` rows, oldest first."""
        newest_first = tuple(islice(reversed(self._rows), rows))
        return newest_first[::-1]

    def compiled(self) -> tuple[Step, ...]:
        """The rows that hold a compilation, of all that are held, oldest first."""
        oldest_ns = self._rows[0].start_ns if self._rows else 0
        return tuple(row for row in self._compiled if row.start_ns >= oldest_ns)

    def all(self) -> tuple[Step, ...]:
        """Every row that is held, oldest first."""
        return tuple(self._rows)

    def after(self, end_ns: int) -> tuple[Step, ...]:
        """Rows that ended after a moment, oldest first."""
        some = 64
        # Rows are added by another thread: only what one call into C takes is taken at one moment.
        while len(rows := self.last(some)) == some and rows[0].end_ns > end_ns:
            some *= 4
        return rows[bisect_right(rows, end_ns, key=lambda step: step.end_ns) :]


MOST_ROWS: Final = 1000
"""The newest rows of a window: a loop of 500 steps a second has more than add anything."""
BATCHES: Final = 10
"""Stretches of steps, whose means show the error of all: a step takes after the one before. Of two
times 200 made-up ones that do by 0.9, 52 of 100 pairs without a change showed one when each row
counted for itself, 3 by the 20 stretches that `compare` cuts its longer runs into, 1 by 10."""
RARE: Final = 0.5
"""Of a phase that fewer steps have, means over all steps say neither how often nor how long."""
_FIELDS: Final = {
    "data": "data_ns",
    START_UP: "startup_ns",
    "forward": "forward_ns",
    "backward": "backward_ns",
    "optimizer": "optimizer_ns",
    "evaluation": "evaluation_ns",
    "checkpoint": "checkpoint_ns",
    "compile": "compile_ns",
}


class Spreads(NamedTuple):
    """Of a window's steps."""

    whole: Spread
    phases: dict[str, Spread]
    """By the names that phases have in a snapshot; those that took no time are left out."""
    merged: int
    """Most steps in one row."""


def spreads_of(steps: Sequence[Step]) -> Spreads | None:
    """The spreads of steps, oldest first; None without any."""
    rows = [row for row in steps[-MOST_ROWS:] if row.count]
    if not rows:
        return None
    counts = [row.count for row in rows]
    walls = [row.end_ns - row.start_ns for row in rows]
    parts = {name: list(map(attrgetter(field), rows)) for name, field in _FIELDS.items()}
    for name in {name for row in rows for name in row.phases}:
        own = [row.phases.get(name, 0) for row in rows]
        # A user's phase may bear one of our names.
        parts[name] = list(map(sum, zip(parts[name], own, strict=True))) if name in parts else own
    claimed = map(sum, zip(*parts.values(), strict=True))
    rest = [max(0, wall - named) for wall, named in zip(walls, claimed, strict=True)]
    phases = {
        name: _spread(values, counts)
        for name, values in {**parts, "other": rest}.items()
        if any(values)
    }
    return Spreads(_spread(walls, counts), phases, max(counts))


def _spread(sums_ns: Sequence[int], counts: Sequence[int]) -> Spread:
    means = [ns / count / 1e6 for ns, count in zip(sums_ns, counts, strict=True)]
    mean = ratio_of(sums_ns, counts, BATCHES)
    ranked = sorted(zip(means, counts, strict=True))
    steps = sum(counts)
    return Spread(
        p50_ms=percentile(ranked, steps, 0.50),
        p95_ms=percentile(ranked, steps, 0.95),
        max_ms=ranked[-1][0],
        error_ms=None if mean is None else mean.error / 1e6,
        rare=_rare(means, counts),
    )


def _rare(means_ms: Sequence[float], counts: Sequence[int]) -> Rare | None:
    having = [(ms, times) for ms, times in zip(means_ms, counts, strict=True) if ms > 0]
    hidden = any(times > 1 for _, times in having)
    if hidden or not having or len(having) > RARE * sum(counts):
        return None
    ends = list(accumulate(counts))
    numbers = [end for end, ms in zip(ends, means_ms, strict=True) if ms > 0]
    return Rare(len(having), fmean(ms for ms, _ in having), spacing_of(numbers))


def percentile(ranked: Sequence[tuple[float, int]], steps: int, part: float) -> float:
    """The smallest value that at least `part` of the steps do not exceed (nearest rank), from
    values in rising order, each with the steps that have it."""
    wanted = part * steps
    if steps == len(ranked):  # no row stands for several
        return ranked[max(0, ceil(wanted) - 1)][0]
    seen = 0
    for value, times in ranked:
        seen += times
        if seen >= wanted:
            return value
    return ranked[-1][0]
