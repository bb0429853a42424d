"""A quantity over time in one row without figures, for comparing one line with the next."""

from collections.abc import Sequence
from typing import Final

from tui.over_time.series import Series
from tui.widgets.charset import EIGHTHS
from tui.widgets.charts.columns import Column, Stretch
from tui.widgets.charts.held_columns import HeldColumns

SECOND_NS: Final = 1_000_000_000
STEPS_A_COLUMN: Final = 3
"""Means over fewer beat with the step, and draw a wave that does not exist."""


def column_for(span_s: int, columns: int, step_ns: int) -> int:
    """The time that a column covers so that all of them go back `span_s` at least: whole seconds,
    and enough steps that they cancel out."""
    asked_ns = max(-(-span_s * SECOND_NS // max(1, columns)), STEPS_A_COLUMN * step_ns)
    return max(1, -(-asked_ns // SECOND_NS)) * SECOND_NS


def times_of(end_ns: int, column_ns: int, columns: int) -> list[Stretch]:
    """The columns' times, oldest first; the last holds `end_ns`."""
    first = end_ns // column_ns - columns + 1
    return [Stretch(at * column_ns, (at + 1) * column_ns) for at in range(first, first + columns)]


def small_strip(held: HeldColumns, series: Series | None, times: Sequence[Stretch]) -> str:
    """Shares of 0 to 100, an eighth block a column; what was not measured is blank."""
    if series is None:
        return " " * len(times)
    return "".join(_cell(column) for column in held.of(series, times))


def _cell(column: Column | None) -> str:
    return " " if column is None else EIGHTHS[max(1, min(8, round(column.mean / 12.5)))]
