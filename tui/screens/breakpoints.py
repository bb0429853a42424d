"""The sizes of a terminal that the stylesheets tell apart: classes of a screen."""

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
