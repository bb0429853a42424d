"""A widget made of rows of spans, of which only those that changed are painted again."""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.charset import Charset
from tui.widgets.spans import EMPTY, Row, Span, fit


class DrawnRows(Widget):
    """Holds the rows that were drawn last."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._drawn: list[Row] = []
        self._charset = Charset.UNICODE

    def draw(self, rows: Sequence[Row], charset: Charset) -> None:
        """Show these rows, as many as there is room for."""
        width, height = self.size
        self._charset = charset
        fitted = [fit(row, width) for row in rows[:height]]
        fitted += [fit(EMPTY, width)] * (height - len(fitted))
        if len(fitted) != len(self._drawn):
            self._drawn = fitted
            self.refresh()
            return
        changed = [y for y, row in enumerate(fitted) if row != self._drawn[y]]
        self._drawn = fitted
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """One row, coloured by its roles."""
        if y >= len(self._drawn):
            return Strip.blank(self.size.width, self.rich_style)
        return Strip([self._segment(span) for span in self._drawn[y]], self.size.width)

    def _segment(self, span: Span) -> Segment:
        return Segment(self._charset.translate(span.text), self._style(span.role))

    def _style(self, role: str) -> Style:
        return self.screen.get_component_rich_style(f"role--{role}")
