"""A chart's arithmetic: samples to columns, columns to rows of blocks.

Columns lie on a grid fixed to absolute time, so a tooth keeps its shape while it scrolls. Where a
column is about as long as a step plain averaging beats against the step and draws a slow wave that
does not exist; there every column shows the mean of whole steps instead: those that begin in it, or
the one that it lies in.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ...model.snapshot import Snapshot
from ...timeseries.series import Level, Series, StepEdges
from ...wording.numbers import ms
from ...wording.rhythm import beat_ns as beat_ns
from ..text import EIGHTHS, SHADE, Row, Span

# How much time the sawtooth shows: chosen by a person, or so that its teeth can be seen.

WINDOWS_S = (1, 3, 10, 30, 120, 600, 3_600)
DEFAULT_S = 10
"""Where the teeth cannot be shown: no step yet, or samples too coarse for them."""
ENOUGH_STEPS = 8
STILL_ENOUGH_STEPS = 4
"""A window that was chosen stays while it holds this many: it must not go back and forth."""
BEAT_FROM, BEAT_TO = 1 / 3, 3.0
"""Columns between these many steps beat with the step: with a step of 1.9 s, the
means of 1 s columns draw a slow wave that does not exist."""
FULL = 0.75
"""A window that samples fill to less than this is the next one, drawn under a wrong name."""


def usable(columns: int, interval_s: float) -> tuple[int, ...]:
    """The windows that differ on a chart of this many columns, one sample each at the finest."""
    least = FULL * columns * interval_s
    return tuple(w for w in WINDOWS_S if w >= least) or WINDOWS_S[-1:]


def automatic(snapshot: Snapshot, columns: int, before: int | None) -> int:
    """The shortest window with enough whole teeth, else the longest in which they still show."""
    choices = usable(columns, _interval_s(snapshot))
    step_s = snapshot.steps.p50_ms / 1000 if snapshot.steps else 0.0
    seen = [w for w in choices if step_s and w / columns <= BEAT_FROM * step_s]
    if before in seen and before >= STILL_ENOUGH_STEPS * step_s:
        return before
    for window_s in seen:
        if window_s >= ENOUGH_STEPS * step_s:
            return window_s
    return seen[-1] if seen else max(DEFAULT_S, choices[0])


def beside(snapshot: Snapshot, columns: int, window_s: int, by: int) -> int:
    """The next longer or shorter window, or the same at the end."""
    choices = usable(columns, _interval_s(snapshot))
    if by > 0:
        return min((w for w in choices if w > window_s), default=choices[-1])
    return max((w for w in choices if w < window_s), default=choices[0])


def _interval_s(snapshot: Snapshot) -> float:
    saw = snapshot.sawtooth
    return saw.series.interval_ns / 1e9 if saw else 0.0


# Rows that are composed cell by cell.


def runs_of(cells: Iterable[Span]) -> Row:
    """The cells with neighbours of one role as one piece: every piece costs bytes of colour. A
    blank has no colour of its own."""
    out: list[Span] = []
    for text, role in cells:
        if out and (out[-1].role == role or not text.strip()):
            out[-1] = Span(out[-1].text + text, out[-1].role)
        else:
            out.append(Span(text, role))
    return tuple(out)


# A share as a horizontal bar.


def share_bar(share: float, cells: int) -> str:
    """In eighths of a cell, never nothing: a share of 0 has no row."""
    eighths = max(1, round(share * cells * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


RESOLVED = 5
"""A mean over whole steps is one of so many samples at least: a part of the first and the last of
them lies in other steps."""
SEVERAL, MANY = 2, 4
"""Samples in a column from which its highest is shown beside the mean, and its lowest."""
STEADY = 0.15
"""A grid stays while the step time has changed by less than this, so that it does not flicker."""
HELD_PICTURES = 8
"""Every chart of a frame asks for the same times, and a frame is shorter than most columns."""
HELD_COLUMNS = 5_000
"""Of the last frames: all but the newest of a chart's columns are as they were. Enough for the
twelve charts of the fullest view on a terminal of 400 columns, and two megabytes: fewer than one
frame asks for in turn, and each is dropped when it is asked for again."""
BETWEEN, EDGE = "▒", 5
"""Fills an area between the lowest and the mean, and its edge where that is more eighths high."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How time is cut into columns."""

    column_ns: int
    whole_steps: int
    """How many steps a column is the mean of; 0: of its own time alone."""
    block_ns: int
    """Columns in the same stretch of this length cover the same whole steps."""
    step_ns: int
    """The step time it was made for: what keeps it steady."""


class ChartColumn(NamedTuple):
    """What one column shows, 0 to 100."""

    mean: float
    peak: float
    low: float | None = None
    """The lowest, of a column of many samples; None where the mean says enough."""


class ColumnSpan(NamedTuple):
    """The time that a column covers."""

    start_ns: int
    end_ns: int


def interval_ns_of(series: Series, window_ns: int, end_ns: int) -> int:
    """How fine a window is held: as it was sampled, or where that is long past as rolled up."""
    return series.level_for(0, end_ns - window_ns).interval_ns


def grid_for(
    window_ns: int, columns: int, interval_ns: int, step_ns: int, before: Grid | None = None
) -> Grid:
    """The grid for a window: never finer than what is held (`interval_ns_of`), never beating with
    steps of `step_ns` (`beat_ns`)."""
    column_ns = max(window_ns // max(1, columns), interval_ns, 1)
    if (
        before is not None
        and before.column_ns == column_ns
        and abs(step_ns - before.step_ns) <= STEADY * before.step_ns
    ):
        return before
    if step_ns <= 0 or not BEAT_FROM < column_ns / step_ns < BEAT_TO:
        return Grid(column_ns, 0, column_ns, step_ns)
    block_ns = column_ns
    if step_ns < RESOLVED * interval_ns:
        block_ns *= -(-RESOLVED * interval_ns // column_ns)
    return Grid(column_ns, max(1, round(block_ns / step_ns)), block_ns, step_ns)


def cells(grid: Grid, end_ns: int, columns: int) -> Sequence[ColumnSpan]:
    """The columns' own times, oldest first; the last holds `end_ns`."""
    return evenly(grid.column_ns, end_ns // grid.column_ns, columns)


@lru_cache(maxsize=HELD_PICTURES)
def evenly(column_ns: int, last: int, columns: int) -> Sequence[ColumnSpan]:
    """So many stretches of absolute time that are equally long, up to the `last` one."""
    first = last - columns + 1
    return tuple(
        ColumnSpan(at * column_ns, (at + 1) * column_ns) for at in range(first, first + columns)
    )


def stretches(grid: Grid, end_ns: int, columns: int, starts: StepEdges) -> Sequence[ColumnSpan]:
    """The times that the columns cover, oldest first; the last column holds `end_ns`."""
    times = cells(grid, end_ns, columns)
    if not grid.whole_steps or len(starts) < 2:
        return times
    return [_whole_steps(cell, grid.block_ns, starts, times[-1].end_ns) for cell in times]


def _whole_steps(cell: ColumnSpan, block_ns: int, starts: StepEdges, until_ns: int) -> ColumnSpan:
    """The steps that begin in the cell's block; where none does, the one that it lies in. Of the
    step that runs now what is known; before the first that is known, the cell's own time."""
    begin_ns = cell.start_ns // block_ns * block_ns
    first, after = starts.before(begin_ns), starts.before(begin_ns + block_ns)
    if first == after:
        first -= 1
    if first < 0:
        return cell
    if after >= len(starts):
        return ColumnSpan(starts[first], until_ns)
    return ColumnSpan(starts[first], starts[after])


def columns_of(
    series: Series, times: Sequence[ColumnSpan], level: Level | None = None
) -> list[ChartColumn | None]:
    """What was sampled in each stretch: mean by time, lowest and highest; None where hardly
    anything was. From `level`, or from the one that fits."""
    if level is None:
        level = level_for(series, times)
    return [_column(series, level, stretch) for stretch in times]


def level_for(series: Series, times: Sequence[ColumnSpan]) -> Level:
    """What these stretches are drawn from."""
    longest_ns = max((end - start for start, end in times), default=0)
    return series.level_for(longest_ns, times[0].start_ns if times else None)


def _column(series: Series, level: Level, stretch: ColumnSpan) -> ChartColumn | None:
    summary, interval_ns = series.over(*stretch, level), series.interval_ns
    if summary is None or summary.known_ns < interval_ns // 4:
        return None
    samples = (stretch.end_ns - stretch.start_ns) / interval_ns
    if samples < SEVERAL:
        return ChartColumn(summary.mean, summary.mean)
    return ChartColumn(summary.mean, summary.high, summary.low if samples >= MANY else None)


def area_rows(
    columns: Sequence[ChartColumn | None], rows: int, low: float = 0.0, high: float = 100.0
) -> list[str]:
    """The columns as rows of text, the topmost first: blocks up to the mean, shade up to the peak.
    Where a column's lowest is known it is solid up to there, and grey from there to the mean.

    A measured nothing is one eighth high; what was not measured is blank.
    """
    standing = [upright(column, rows, low, high) for column in columns]
    return ["".join(cells) for cells in zip(*standing, strict=True)] or [""] * rows


@lru_cache(maxsize=HELD_COLUMNS)
def upright(column: ChartColumn | None, rows: int, low: float, high: float) -> str:
    """A column's cells, the topmost first."""
    if column is None:
        return " " * rows
    scale = rows * 8 / (high - low)
    mean = min(rows * 8, max(1, round((column.mean - low) * scale)))
    peak = min(rows * 8, round((column.peak - low) * scale))
    least = mean if column.low is None else round((column.low - low) * scale)
    return "".join(_cell(mean, peak, least, 8 * (rows - 1 - y)) for y in range(rows))


def _cell(mean: int, peak: int, least: int, floor: int) -> str:
    if mean > floor + EDGE and least < floor + 4 and least < mean:
        return BETWEEN
    if mean > floor:
        return EIGHTHS[min(8, mean - floor)]
    return SHADE if peak >= floor + 4 else " "


def tick_row(times: Sequence[ColumnSpan], starts: StepEdges, unknown: Sequence[bool] = ()) -> str:
    """The axis, with a tick in every column in which a step begins; dashed where it is `unknown`
    what was."""
    cells: list[str] = []
    for at, (start, end) in enumerate(times):
        begins = starts.before(end) > starts.before(start)
        cells.append("┴" if begins else "┄" if unknown and unknown[at] else "─")
    return "".join(cells)


def grain_words(grid: Grid) -> str:
    """What a column covers."""
    if not grid.whole_steps:
        return f"a column is {ms(grid.column_ns)}"
    return "a column is " + ("one step" if grid.whole_steps == 1 else f"{grid.whole_steps} steps")


# Columns that cannot change any more, kept from frame to frame.


class HeldColumns:
    """What was worked out for the stretches of the last frame. A stretch that ends before the
    newest sample is shown in full: only the others are read again."""

    def __init__(self) -> None:
        self._held: dict[
            tuple[str, int | None], tuple[int, dict[ColumnSpan, ChartColumn | None]]
        ] = {}
        """With where the series began: another process's has another beginning."""

    def of(self, series: Series, times: Sequence[ColumnSpan]) -> list[ChartColumn | None]:
        """The columns at the level that fits; a sample that is longer than a column fills several,
        all at its value."""
        key = (series.name, series.device)
        start_ns, held = self._held.get(key, (0, {}))
        if start_ns != series.start_ns:
            held = {}
        fresh = [stretch for stretch in times if stretch not in held]
        if fresh:
            longest_ns = max(end - start for start, end in times)
            level = series.level_for(longest_ns, times[0].start_ns)
            read = columns_of if longest_ns >= series.interval_ns else _filled
            held = {**held, **dict(zip(fresh, read(series, fresh, level), strict=True))}
        columns = [held[stretch] for stretch in times]
        end_ns = series.levels[0].end_ns  # what is `running` may turn out otherwise
        kept = {stretch: held[stretch] for stretch in times if stretch.end_ns < end_ns}
        self._held[key] = series.start_ns, kept
        return columns


def _filled(series: Series, times: Sequence[ColumnSpan], level: Level) -> list[ChartColumn | None]:
    summary = [series.over(*stretch, level) for stretch in times]
    return [None if one is None else ChartColumn(one.mean, one.mean) for one in summary]
