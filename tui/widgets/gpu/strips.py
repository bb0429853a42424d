"""A strip: one quantity over time in a row or more, with its figures at the right end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tui.widgets.charts.columns import Column
from tui.widgets.gpu.scales import Scale
from tui.widgets.spans import Row, Span, cell_len, clip

NARROW: Final = 60
"""Below, labels are short and one figure must do."""
PEAK_FROM, MEAN_FROM = 90, 110


@dataclass(frozen=True, slots=True)
class Figures:
    """How a row of the picture is divided: label, columns of time, figures."""

    label: int
    """Cells before the line."""
    columns: int
    titles: tuple[tuple[str, int], ...]
    """What is written at the right end, and in how many cells."""
    is_short: bool
    """Labels are the short ones, and the figure now bears its unit."""


def figures_for(width: int) -> Figures:
    """As many figures as leave most of the row to the picture."""
    narrow, label = width < NARROW, label_cells(width)
    titles = [("now", 10 if narrow else 8)]
    titles += [("mean", 8)] if width >= MEAN_FROM else []
    titles += [("peak", 8)] if width >= PEAK_FROM else []
    titles += [] if narrow else [("scale", 11)]
    room = width - label - 2 - sum(cells for _, cells in titles)
    return Figures(label, max(1, room), tuple(titles), narrow)


def label_cells(width: int) -> int:
    """Of the labels at the left end."""
    return 9 if width < NARROW else 11


def titles_text(figures: Figures, now: str) -> str:
    """What the figures are; `now`: of which moment the first one is."""
    return "".join(
        f"{now if title == 'now' else title:>{cells}}" for title, cells in figures.titles
    )


def figures_text(
    figures: Figures, columns: Sequence[Column | None], now: float | None, scale: Scale
) -> str:
    """The figures of one quantity; what was not measured is blank."""
    seen = [column for column in columns if column is not None]
    if figures.is_short:
        return "" if now is None else f"{scale.figure_of_scale(now, figures.titles[0][1]):>10}"
    told = {
        "now": "" if now is None else scale.figure(now),
        "mean": scale.figure(sum(one.mean for one in seen) / len(seen)) if seen else "",
        "peak": scale.figure(max(one.peak for one in seen)) if seen else "",
        "scale": scale.words,
    }
    return "".join(f"{told[title]:>{cells}}" for title, cells in figures.titles)


def hatched_row(label: str, what: str, why: str, figures: Figures) -> Row:
    """What cannot be measured here, and why: hatched, so that nobody takes it for nothing."""
    room = max(0, figures.columns - 5)
    full = f" {what}: {why}"
    said = clip(full if cell_len(full) <= room else f" {why}", room) + " "
    left = max(0, figures.columns - cell_len(said)) // 2
    right = max(0, figures.columns - left - cell_len(said))
    return (
        Span(f"{label:>{figures.label}}┤{'╱' * left}", "dim"),
        Span(said),
        Span("╱" * right, "dim"),
    )


def strip_rows(label: str, body: Sequence[str], told: str, figures: Figures) -> list[Row]:
    """The strip; its label and its figures stand on its last row."""
    out: list[Row] = []
    for y, text in enumerate(body):
        named = y == len(body) - 1
        left = Span(f"{label if named else '':>{figures.label}}┤", "dim")
        out.append((left, Span(text, "area"), Span(f" {told}" if named else "")))
    return out
