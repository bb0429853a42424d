"""The sawtooth's arithmetic: samples to columns, columns to rows of blocks.

Columns lie on a grid fixed to absolute time, so a tooth keeps its shape while it scrolls. Where a
column is about as long as a step (0.3 to 3 steps) plain averaging beats against the step and draws
a slow wave that does not exist; there every column covers whole steps instead.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tui.snapshot import Sample, Sawtooth
from tui.widgets.charset import EIGHTHS, SHADE

BEAT_FROM, BEAT_TO = 0.3, 3.0
"""Columns between these many steps beat with the step (terminal.md 1, rule 5)."""
STEADY = 0.15
"""A grid stays while the step time has changed by less than this, so that it does not flicker."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How time is cut into columns."""

    column_ns: int
    whole_steps: int
    """Steps in a column that is cut at step starts; 0: cut by time alone."""
    asked_ns: int
    """The column that was asked for, and the step time it was judged by: what keeps it steady."""
    step_ns: int


class Column(NamedTuple):
    """What one column shows, 0 to 100."""

    mean: float
    peak: float


class Stretch(NamedTuple):
    """The time that a column covers."""

    start_ns: int
    end_ns: int


def grid_for(
    window_ns: int, columns: int, interval_ns: int, step_ns: int, before: Grid | None = None
) -> Grid:
    """The grid for a window: never finer than the samples, never beating with the steps."""
    asked = max(window_ns // max(1, columns), interval_ns, 1)
    if (
        before is not None
        and before.asked_ns == asked
        and abs(step_ns - before.step_ns) <= STEADY * before.step_ns
    ):
        return before
    if step_ns <= 0 or not BEAT_FROM < asked / step_ns < BEAT_TO:
        return Grid(asked, 0, asked, step_ns)
    steps = max(1, round(asked / step_ns), -(-interval_ns // step_ns))
    return Grid(steps * step_ns, steps, asked, step_ns)


def stretches(grid: Grid, end_ns: int, columns: int, starts: Sequence[int]) -> list[Stretch]:
    """The columns' times, oldest first; the last holds `end_ns`."""
    newest = end_ns // grid.column_ns
    lines = [(newest - columns + 1 + i) * grid.column_ns for i in range(columns + 1)]
    if not grid.whole_steps or len(starts) < 2:
        return [Stretch(a, b) for a, b in pairwise(lines)]
    return [_whole_steps(a, b, starts) for a, b in pairwise(lines)]


def _whole_steps(start_ns: int, end_ns: int, starts: Sequence[int]) -> Stretch:
    """The steps that begin in a stretch of the grid; where none does, the one that covers it."""
    first = bisect_left(starts, start_ns)
    after = bisect_left(starts, end_ns)
    if first == after:
        first -= 1
    if first < 0 or after >= len(starts):
        return Stretch(start_ns, start_ns)  # its steps are not all known: nothing to draw
    return Stretch(starts[first], starts[after])


def columns_of(saw: Sawtooth, times: Sequence[Stretch]) -> list[Column | None]:
    """What was sampled in each stretch: mean by time, peak; None where nothing was."""
    samples, interval = saw.samples, saw.interval_ns
    return [_column(samples, interval, stretch) for stretch in times]


def _column(samples: Sequence[Sample], interval: int, stretch: Stretch) -> Column | None:
    start, end = stretch
    at = bisect_right(samples, start, key=_time)
    weight = total = 0
    peak = 0.0
    while at < len(samples):
        stop, value = samples[at].t_ns, samples[at].value
        begin = stop - interval
        if at and begin < samples[at - 1].t_ns:
            begin = samples[at - 1].t_ns
        if begin >= end:
            break
        overlap = min(stop, end) - max(begin, start)
        weight += overlap
        total += int(overlap * value)
        if start <= (begin + stop) // 2 < end:
            peak = max(peak, value)
        at += 1
    if weight < interval // 4:
        return None
    mean = total / weight
    several = end - start >= 2 * interval
    return Column(mean, max(peak, mean) if several else mean)


def _time(sample: Sample) -> int:
    return sample.t_ns


def area_rows(
    columns: Sequence[Column | None], rows: int, low: float = 0.0, high: float = 100.0
) -> list[str]:
    """The columns as rows of text, the topmost first: blocks up to the mean, shade up to the peak.

    A measured nothing is one eighth high; what was not measured is blank.
    """
    scale = rows * 8 / (high - low)
    heights: list[tuple[int, int]] = []
    for column in columns:
        if column is None:
            heights.append((0, 0))
            continue
        mean = min(rows * 8, max(1, round((column.mean - low) * scale)))
        peak = min(rows * 8, round((column.peak - low) * scale))
        heights.append((mean, peak))
    return [_area_row(heights, 8 * (rows - 1 - y)) for y in range(rows)]


def _area_row(heights: Sequence[tuple[int, int]], floor: int) -> str:
    cells: list[str] = []
    for mean, peak in heights:
        if mean > floor:
            cells.append(EIGHTHS[min(8, mean - floor)])
        else:
            cells.append(SHADE if peak >= floor + 4 else " ")
    return "".join(cells)


def tick_row(times: Sequence[Stretch], starts: Sequence[int]) -> str:
    """The axis, with a tick in every column in which a step begins."""
    cells: list[str] = []
    for start, end in times:
        begins = bisect_left(starts, end) > bisect_left(starts, start)
        cells.append("┴" if begins else "─")
    return "".join(cells)
