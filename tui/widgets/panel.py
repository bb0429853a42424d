"""The base of all panels: rows that are composed from a view."""

from collections.abc import Sequence

from textual import events
from textual.strip import Strip

from tui.widgets.drawn import DrawnRows
from tui.widgets.spans import Row, Span
from tui.widgets.view import View

ROLES = (
    *("text", "dim", "strong", "title", "focus", "rule", "key", "area", "paused"),
    *("critical", "warning", "info", "good"),
    *("data", "startup", "forward", "backward", "optimizer", "evaluation", "checkpoint"),
    *("compile", "user", "other"),
)
"""Everything that text can mean; the colours are in the stylesheet."""

ROLE_CLASSES = {f"role--{role}" for role in ROLES}
"""The component classes of a screen with panels: kept there once, not in every panel."""


class Panel(DrawnRows):
    """Draws `rows(view, width, height)`; holds the last view."""

    can_focus = True
    KIND = ""
    """Its name in the table of keys, where it has keys of its own."""
    typing = False
    """Keys are text in it now: `take_key` has them."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._view: View | None = None

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The panel's content, at most `height` rows."""
        raise NotImplementedError

    def columns_in(self, width: int) -> int:
        """Columns of time that it has at this width; 0: no picture in it follows the window."""
        return 0

    def take_key(self, event: events.Key) -> None:
        """A key while one types."""
        raise NotImplementedError

    def drill(self) -> bool:
        """Enter: into what is marked in it; False where it has no inside of its own."""
        return False

    def show(self, view: View) -> None:
        """Draw a new frame."""
        self._view = view
        size = self.size
        if size:
            self.draw(self._rows(view, *size), view.charset, size)

    def render_line(self, y: int) -> Strip:
        """One row. It is painted before it is told of its first size: not without its rows."""
        if not self._drawn and self._view is not None:
            size = self.size
            self.hold(self._rows(self._view, *size), self._view.charset, size)
        return super().render_line(y)

    def _rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        rows = self.rows(view, width, height)
        return _marked(rows) if self.has_focus else rows

    def on_resize(self, event: events.Resize) -> None:
        """The same frame at another size."""
        self._redraw()

    def watch_has_focus(self, value: bool) -> None:
        """Show whether the keys mean this panel."""
        super().watch_has_focus(value)
        self._redraw()

    def _redraw(self) -> None:
        if self._view is not None:
            self.show(self._view)


def _marked(rows: Sequence[Row]) -> Sequence[Row]:
    """Where no heading has room, the blank that the first row begins with tells the focus."""
    if not rows or not rows[0] or any(span.role == "focus" for row in rows for span in row):
        return rows
    first, *others = rows[0]
    if not first.text.startswith(" "):
        return rows
    return [(Span("▸", "focus"), Span(first.text[1:], first.role), *others), *rows[1:]]
