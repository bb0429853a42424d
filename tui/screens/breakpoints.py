"""The sizes of a terminal that the stylesheets tell apart: classes of a screen."""

from bisect import bisect_right

WIDTHS = [
    (0, "-tiny-wide"),
    (40, "-floor-wide"),
    (60, "-normal-wide"),
    (100, "-roomy-wide"),
    (160, "-huge-wide"),
]
"""From so many columns on."""
HEIGHTS = [
    (0, "-tiny-tall"),
    (12, "-floor-tall"),
    (24, "-normal-tall"),
    (30, "-roomy-tall"),
    (50, "-huge-tall"),
]
"""From so many rows on."""


def classes_at(width: int, height: int) -> set[str]:
    """Those of a terminal of so many columns and rows."""
    return {_last_at(WIDTHS, width), _last_at(HEIGHTS, height)}


def _last_at(breakpoints: list[tuple[int, str]], cells: int) -> str:
    return breakpoints[bisect_right(breakpoints, cells, key=lambda one: one[0]) - 1][1]
