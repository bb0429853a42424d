"""The base of all panels: rows of spans on the screen, repainting only the rows that changed."""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.charset import Charset
from tui.widgets.spans import EMPTY, Row, Span, fit
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


class Panel(Widget):
    """Draws `rows(view, width, height)`; holds the last view and the rows it became."""

    can_focus = True
    KIND = ""
    """Its name in the table of keys, where it has keys of its own."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._view: View | None = None
        self._drawn: list[Row] = []

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The panel's content, at most `height` rows."""
        raise NotImplementedError

    def drill(self) -> bool:
        """Enter: into what is marked in it; False where it has no inside of its own."""
        return False

    def show(self, view: View) -> None:
        """Draw a new frame."""
        self._view = view
        width, height = self.size
        if not width or not height:
            return
        rows = [fit(row, width) for row in self.rows(view, width, height)[:height]]
        rows += [fit(EMPTY, width)] * (height - len(rows))
        if len(rows) != len(self._drawn):
            self._drawn = rows
            self.refresh()
            return
        changed = [y for y, row in enumerate(rows) if row != self._drawn[y]]
        self._drawn = rows
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """One row, coloured by its roles."""
        if self._view is None or y >= len(self._drawn):
            return Strip.blank(self.size.width, self.rich_style)
        charset = self._view.charset
        return Strip([self._segment(span, charset) for span in self._drawn[y]], self.size.width)

    def _segment(self, span: Span, charset: Charset) -> Segment:
        return Segment(charset.translate(span.text), self._style(span.role))

    def _style(self, role: str) -> Style:
        return self.screen.get_component_rich_style(f"role--{role}")

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
