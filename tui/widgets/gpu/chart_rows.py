"""The rows of the chart of a GPU's activity: scale, area, axis, and the times below."""

from collections.abc import Sequence

from tui.widgets.charts.columns import Grid, grain_words
from tui.widgets.gpu.strips import Figures
from tui.widgets.spans import Row, Span, cell_len, clip, joined
from tui.wording.numbers import span

SCALE = 4
"""Cells of the scale's figures: " 100"."""


def chart_rows(
    name: str, body: Sequence[str], figures: Figures, titles: str, told: str
) -> list[Row]:
    """A fixed 0 to 100. `titles` of the figures stand beside its first row, its own figures and its
    name beside the last."""
    rows = len(body)
    out: list[Row] = []
    for y, (mark, text) in enumerate(zip(_scale(rows), body, strict=True)):
        last = y == rows - 1
        left = clip(name, figures.label - SCALE) if last else ""
        right = Span(f" {told}") if last else Span(f" {titles}" if y == 0 else "", "dim")
        scale = f"{left:>{figures.label - SCALE}}{mark:>{SCALE}}┤"
        out.append((Span(scale, "dim"), Span(text, "area"), right))
    return out


def _scale(rows: int) -> list[str]:
    """Always at the ends, 50 in the middle where there is one."""
    out = [""] * rows
    if rows >= 4:
        out[rows // 2] = "50"
    out[-1] = "0"
    if rows > 1:
        out[0] = "100"
    return out


def axis_row(line: str, figures: Figures) -> Row:
    """The axis."""
    return (Span(f"{'':{figures.label}}└{line}", "dim"),)


def caption_row(grid: Grid, said: Sequence[str], newest: str, figures: Figures) -> Row:
    """How far back the picture goes, what a column is, and what is said of it."""
    columns = figures.columns
    back = f"-{span(grid.column_ns * columns / 1e9)}"
    room = columns - cell_len(back) - cell_len(newest) - 4
    middle = joined([grain_words(grid), *said], room)
    pad = max(0, room - cell_len(middle)) // 2
    text = f"{back}  {'':{pad}}{middle}"
    left = f"{text:<{max(0, columns - cell_len(newest))}}"
    return (Span(f"{'':{figures.label + 1}}{left}{newest}", "dim"),)
