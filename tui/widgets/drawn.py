"""A widget made of rows of spans, of which only those that changed are painted again."""

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.charset import Charset
from tui.widgets.spans import EMPTY, Row, fit


class DrawnRows(Widget):
    """Holds the rows that were drawn last."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._drawn: list[Row] = []
        self._charset = Charset.UNICODE

    def draw(self, rows: Sequence[Row], charset: Charset, size: Size) -> None:
        """Show these rows, as many as there is room for."""
        before = self._drawn
        self.hold(rows, charset, size)
        if len(before) != len(self._drawn):
            self.refresh()
            return
        changed = [y for y, row in enumerate(self._drawn) if row != before[y]]
        if changed:
            self.refresh(*(Region(0, y, size.width, 1) for y in changed))

    def hold(self, rows: Sequence[Row], charset: Charset, size: Size) -> None:
        """Have these rows when it is painted, which is seen to elsewhere. `size` is the widget's,
        which Textual works out anew whenever it is asked."""
        width, height = size
        self._charset = charset
        self._drawn = [fit(row, width) for row in rows[:height]]
        self._drawn += [fit(EMPTY, width)] * (height - len(self._drawn))

    def render_line(self, y: int) -> Strip:
        """One row, coloured by its roles."""
        if y >= len(self._drawn):
            return Strip.blank(self.size.width, self.rich_style)
        style_of = self.screen.get_component_rich_style
        return Strip(
            [
                Segment(self._charset.translate(span.text), style_of(f"role--{span.role}"))
                for span in self._drawn[y]
            ],
            self.size.width,
        )
