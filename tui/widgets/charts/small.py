"""How often steps take how long."""

from collections.abc import Sequence
from typing import Final

from ...timeseries.series import Series
from ...wording.numbers import count, milliseconds
from ..text import EIGHTHS, Row, Span
from .columns import ChartColumn, ColumnSpan, HeldColumns, area_rows

GUTTER: Final = 5
LEAST_STEPS: Final = 20
LEAST_HEIGHT: Final = 4
CELLS_A_BAR: Final = 2
BEYOND: Final = 3.0
"""Steps longer than so many medians are counted, and not drawn: the others must stay apart."""
NEAR: Final = 1.25
"""A single step this near to the others does not squeeze them."""


def histogram_rows(walls_ms: Sequence[float], width: int, height: int) -> list[Row]:
    """Bars over the times of steps, the scale below; [] where there are too few of either."""
    if len(walls_ms) < LEAST_STEPS or height < LEAST_HEIGHT or width < 4 * GUTTER:
        return []
    ranked = sorted(walls_ms)
    low, high = _ends(ranked)
    drawn = [ms for ms in ranked if low <= ms <= high]
    low, high = drawn[0], max(drawn[-1], drawn[0] * 1.02)
    bars = max(1, (width - GUTTER - 1) // CELLS_A_BAR)
    counts = [0] * bars
    for ms in drawn:
        counts[min(bars - 1, int((ms - low) / (high - low) * bars))] += 1
    top = max(counts)
    columns = [ChartColumn(n, n) if n else None for n in counts for _ in range(CELLS_A_BAR)]
    body = area_rows(columns, height - 2, 0.0, top)
    labels = [f"{top:>{GUTTER - 1}}┤", *[" " * (GUTTER - 1) + "┤"] * (len(body) - 1)]
    out: list[Row] = [
        (Span(label, "dim"), Span(text, "area")) for label, text in zip(labels, body, strict=True)
    ]
    axis = " " * (GUTTER - 1) + "└" + "─" * (bars * CELLS_A_BAR)
    return [*out, (Span(axis, "dim"),), _scale(low, high, ranked, width)]


def _ends(ranked: Sequence[float]) -> tuple[float, float]:
    """Of the scale: the shortest and the longest step, or the hundredth from there where a few
    single ones would squeeze all others; and in any case not far beyond the usual."""
    aside = len(ranked) // 100
    low, high = ranked[aside], min(ranked[-1 - aside], BEYOND * ranked[len(ranked) // 2])
    shortest, longest = ranked[0], ranked[-1]
    return shortest if shortest * NEAR >= low else low, longest if longest <= NEAR * high else high


def _scale(low: float, high: float, ranked: Sequence[float], width: int) -> Row:
    left, right = f"{'':{GUTTER}}{milliseconds(low)}", milliseconds(high)
    aside = {"shorter": sum(ms < low for ms in ranked), "longer": sum(ms > high for ms in ranked)}
    words = " · ".join(f"{count(steps)} {name}" for name, steps in aside.items() if steps)
    room = max(1, width - len(left) - len(right) - 1)
    return (Span(f"{left}{words if len(words) < room - 2 else '':^{room}}{right}", "dim"),)


# A quantity over time in one row without figures, for comparing one line with the next.

SECOND_NS: Final = 1_000_000_000
STEPS_A_COLUMN: Final = 3
"""Means over fewer beat with the step, and draw a wave that does not exist."""


def column_for(span_s: int, columns: int, step_ns: int) -> int:
    """The time that a column covers so that all of them go back `span_s` at least: whole seconds,
    and enough steps that they cancel out."""
    asked_ns = max(-(-span_s * SECOND_NS // max(1, columns)), STEPS_A_COLUMN * step_ns)
    return max(1, -(-asked_ns // SECOND_NS)) * SECOND_NS


def times_of(end_ns: int, column_ns: int, columns: int) -> list[ColumnSpan]:
    """The columns' times, oldest first; the last holds `end_ns`."""
    first = end_ns // column_ns - columns + 1
    return [
        ColumnSpan(at * column_ns, (at + 1) * column_ns) for at in range(first, first + columns)
    ]


def small_strip(held: HeldColumns, series: Series | None, times: Sequence[ColumnSpan]) -> str:
    """Shares of 0 to 100, an eighth block a column; what was not measured is blank."""
    if series is None:
        return " " * len(times)
    return "".join(_cell(column) for column in held.of(series, times))


def _cell(column: ChartColumn | None) -> str:
    return " " if column is None else EIGHTHS[max(1, min(8, round(column.mean / 12.5)))]
