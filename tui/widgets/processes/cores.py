"""Cores that the training uses over time, of those that it may use."""

from collections.abc import Sequence
from typing import Final

from tui.widgets.charts.columns import area_rows
from tui.widgets.charts.known_times import known_columns, times_of
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, row, rule
from tui.widgets.view import View
from tui.wording.numbers import span

LABEL: Final = 5
NAME: Final = "cores"
"""Of the series."""


class CoresPanel(Panel):
    """The target, its workers and its other children together."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading and area, from none to all of them."""
        snapshot = view.snapshot
        series = next((one for one in snapshot.series if one.name == NAME), None)
        if series is None or not snapshot.cores:
            head = rule("Cores used", (), width, self.has_focus)
            return [head, row("   not measured yet", "dim")]
        times = times_of(view, [series], max(1, width - LABEL - 2))
        back = f"last {span((times[-1].end_ns - times[0].start_ns) / 1e9)}"
        source = f"{series.source} {span(series.interval_ns / 1e9)}"
        head = rule("Cores used", (back, source), width, self.has_focus)
        columns = known_columns(series, times)
        most = max([snapshot.cores, *(column.peak for column in columns if column is not None)])
        body = area_rows(columns, max(1, height - 1), 0.0, most)
        labels = [" " * LABEL] * len(body)
        labels[0] = f"{most:>{LABEL}.0f}"
        if len(body) > 1:
            labels[-1] = f"{0:>{LABEL}}"
        return [
            head,
            *(
                (Span(f"{label}┤", "dim"), Span(text, "area"))
                for label, text in zip(labels, body, strict=True)
            ),
        ]
