"""The base of the panels that draw over time: the keys of their cursor."""

from collections.abc import Sequence

from textual.message import Message

from tui.widgets.bindings import bindings
from tui.widgets.charts.columns import Stretch
from tui.widgets.charts.cursor import moved
from tui.widgets.panel import Panel


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
        self._cells: Sequence[Stretch] = ()

    def action_cursor(self, by: int) -> None:
        """So many columns later, or earlier: below 0."""
        t_ns = moved(self._cells, self._view.cursor_ns if self._view else None, by)
        if t_ns is not None:
            self.post_message(CursorMoved(t_ns))
