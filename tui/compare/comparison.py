"""One side against the other: what changed, figure by figure, and what `--fail-if` makes of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Literal

from ..errors import UsageError
from ..model.snapshot import Snapshot
from ..recording.whole_run import WholeRun
from .figures import FIGURES, SAMPLES, STEP, Figure, Settled, measured, settled
from .intervals import CONFIDENCE, Change, Estimate, change

WORTH: Final = 0.002
"""Part of a step from which a phase is worth a row, on either side."""

SAME_SIZE: Final = 0.1
"""Steps of both sides hold as many samples: by so much as a part they may differ."""

Found = Literal["better", "worse", "changed", "no change found"]


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one side."""

    name: str
    runs: tuple[Settled, ...]
    last: Snapshot
    """The end of the last of them: its verdict, and the time by verdict."""

    @property
    def steps(self) -> int:
        """Those that count, of all runs."""
        return sum(step.count for run in self.runs for step in run.steps)

    @property
    def left_out(self) -> int:
        """Steps before the runs had settled."""
        return sum(run.left_out for run in self.runs)

    @property
    def samples_step(self) -> float | None:
        """Samples of a step on average; None where they are not known."""
        rows = [(step.samples, step.count) for run in self.runs for step in run.steps]
        known = [samples for samples, _ in rows if samples]
        if not rows or len(known) < len(rows):
            return None
        return sum(known) / sum(count for _, count in rows)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure on both sides."""

    figure: Figure
    change: Change
    found: Found


@dataclass(frozen=True, slots=True)
class Comparison:
    """From `a` to `b`."""

    a: Side
    b: Side
    rows: tuple[Row, ...]
    """What is shown."""
    small: tuple[Row, ...]
    """Phases that take hardly any of a step on either side: measured, and worth no row."""
    confidence: float

    @property
    def measured(self) -> dict[str, Row]:
        """All figures that both sides have, by key: for conditions."""
        return {row.figure.key: row for row in (*self.rows, *self.small)}

    @property
    def step(self) -> Row | None:
        """The step time; None where one of the two has too few steps."""
        return next((row for row in self.rows if row.figure is STEP), None)

    @property
    def is_resized(self) -> bool:
        """Steps of one side hold more samples: how long a step takes says nothing of the pace."""
        return are_of_other_sizes(self.a, self.b)

    @property
    def head(self) -> Row | None:
        """What tells which side is faster: the step time, of steps that hold as much."""
        return self.measured.get(SAMPLES.key) if self.is_resized else self.step

    @property
    def is_one_pair(self) -> bool:
        """One run a side: what differs from run to run was not measured."""
        return len(self.a.runs) == 1 or len(self.b.runs) == 1


def are_of_other_sizes(a: Side, b: Side) -> bool:
    """Whether a step of one side holds more samples; not where that is unknown."""
    before, after = a.samples_step, b.samples_step
    return before is not None and after is not None and abs(after - before) > SAME_SIZE * before


def side(name: str, runs: Sequence[WholeRun], last: Snapshot) -> Side:
    """Of these runs, at least one."""
    return Side(name, tuple(map(settled, runs)), last)


def compare(a: Side, b: Side, confidence: float = CONFIDENCE) -> Comparison:
    """What tells which side is faster at `confidence`; all else at what leaves as little to chance
    for all rows together (Bonferroni)."""
    before, after = measured(a.runs), measured(b.runs)
    step = before.get(STEP.key)
    worth = 0.0 if step is None else WORTH * step.mean
    shared = [one for one in FIGURES if one.key in before and one.key in after]
    small = {
        one
        for one in shared
        if one.unit == "ms" and max(before[one.key].mean, after[one.key].mean) < worth
    }
    resized = are_of_other_sizes(a, b)
    head = SAMPLES if resized else STEP
    others = max(1, len(shared) - len(small) - 1)
    rows = []
    for figure in shared:
        level = confidence if figure is head else 1 - (1 - confidence) / others
        rows.append(row_of(figure, before[figure.key], after[figure.key], level, resized))
    shown = tuple(row for row in rows if row.figure not in small)
    return Comparison(a, b, shown, tuple(row for row in rows if row.figure in small), confidence)


def row_of(
    figure: Figure, before: Estimate, after: Estimate, confidence: float, resized: bool = False
) -> Row:
    """One figure's. Of steps that hold more samples no time a step is better or worse."""
    moved = change(before, after, confidence)
    if not moved.is_found:
        return Row(figure, moved, "no change found")
    if figure.better == "neither" or (resized and figure.unit == "ms"):
        return Row(figure, moved, "changed")
    less = moved.after < moved.before
    return Row(figure, moved, "better" if less == (figure.better == "less") else "worse")


# --fail-if 'step_ms>+5%'

_CONDITION: Final = re.compile(
    r"\s*(?P<key>[a-z_0-9]+)\s*(?P<sign>[<>])\s*(?P<limit>[+-]?\d+(?:\.\d+)?)\s*(?P<percent>%?)\s*"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """When a comparison fails. A limit in percent is one of the change and has a sign before it; a
    plain one is of side `b` itself, in the figure's unit."""

    text: str
    key: str
    above: bool
    limit: float
    """In percent, or in the figure's unit."""
    of_change: bool

    def holds(self, rows: Mapping[str, Row]) -> bool | None:
        """Whether it holds: the change is beyond the limit, and not by chance. None where the
        figure was not measured."""
        row = rows.get(self.key)
        if row is None:
            return None
        if not self.of_change:
            return row.change.after > self.limit if self.above else row.change.after < self.limit
        relative = row.change.relative
        if relative is None:  # of nothing: what is more now is so by more than any percentage
            relative = inf if row.change.after > 0 else 0.0
        beyond = 100 * relative > self.limit if self.above else 100 * relative < self.limit
        return beyond and row.change.is_found


def condition_of(text: str) -> Condition:
    """Raises UsageError for anything that is no condition."""
    match = _CONDITION.fullmatch(text)
    keys = [figure.key for figure in FIGURES]
    if match is None or match["key"] not in keys:
        raise UsageError(
            f"--fail-if {text!r} is no condition",
            f"Figures: {', '.join(keys)}",
            "Write for example: --fail-if 'step_ms>+5%'",
        )
    percent = bool(match["percent"])
    return Condition(text, match["key"], match["sign"] == ">", float(match["limit"]), percent)
