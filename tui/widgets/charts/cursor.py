"""The cursor of the charts: where it goes, and how it is drawn."""

from bisect import bisect_right
from collections.abc import Sequence

from textual.message import Message

from ..footer import bindings
from ..panel import Panel
from .columns import ColumnSpan

MARK = "│"
ON_AXIS = "◆"


def column_at(cells: Sequence[ColumnSpan], t_ns: int | None) -> int | None:
    """The column that a moment lies in; None beside them."""
    if t_ns is None or not cells or not cells[0].start_ns <= t_ns < cells[-1].end_ns:
        return None
    return bisect_right(cells, t_ns, key=lambda cell: cell.start_ns) - 1


def moved(cells: Sequence[ColumnSpan], t_ns: int | None, by: int) -> int | None:
    """The moment to read after a key press: so many columns on, at the ends no further. A cursor
    that is not in the picture first comes in, at the nearest end; None where there is no column."""
    if not cells:
        return None
    at = column_at(cells, t_ns)
    if at is None:
        at = 0 if t_ns is not None and t_ns < cells[0].start_ns else len(cells) - 1
        by = by if abs(by) >= len(cells) else 0
    at = max(0, min(len(cells) - 1, at + by))
    return (cells[at].start_ns + cells[at].end_ns) // 2


def marked(rows: Sequence[str], at: int | None, mark: str = MARK) -> list[str]:
    """Rows of a chart with the cursor's column in them."""
    if at is None:
        return list(rows)
    return [text[:at] + mark + text[at + 1 :] for text in rows]


# The base of the panels that draw over time: the keys of their cursor.


class CursorMoved(Message):
    """A person reads another moment. All charts show it, so the app keeps it."""

    def __init__(self, t_ns: int) -> None:
        super().__init__()
        self.t_ns = t_ns


class ChartPanel(Panel):
    """Keeps the columns' own times of its last frame: the cursor goes from one to the next."""

    KIND = "chart"
    BINDINGS = bindings("chart")

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._cells: Sequence[ColumnSpan] = ()

    def action_cursor(self, by: int) -> None:
        """So many columns later, or earlier: below 0."""
        t_ns = moved(self._cells, self._view.cursor_ns if self._view else None, by)
        if t_ns is not None:
            self.post_message(CursorMoved(t_ns))
