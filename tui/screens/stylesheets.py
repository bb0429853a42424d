"""The stylesheets: which an app begins with, and those that it reads when they are first needed.

Every rule is read before the first frame, and tried on every panel; so the views that are not
shown yet and the themes that are not worn must not be among them.
"""

from bisect import bisect_right
from pathlib import Path
from typing import Any, Final

from textual.app import App

# The sizes of a terminal that the stylesheets distinguish: classes of a screen.

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


FOLDER: Final = Path(__file__).resolve().parent / "styles"
BASE_THEME: Final = "dark"
"""The other themes stand on it."""


def first_styles(theme: str, *names: str) -> list[Path]:
    """Those of a theme, and these."""
    themes = (BASE_THEME,) if theme == BASE_THEME else (BASE_THEME, theme)
    return [*map(_theme_path, themes), *map(_path, names)]


def read_theme(app: App[Any], theme: str) -> None:
    """Have the rules of a theme. They count from the next `refresh_css` on."""
    app.stylesheet.read(_theme_path(theme))


def read_view(app: App[Any], name: str) -> None:
    """Have the rules of a view: for what is styled from now on."""
    app.stylesheet.read(_path(name))
    app.stylesheet.parse()


def _theme_path(theme: str) -> Path:
    return _path(f"themes/{theme}")


def _path(name: str) -> Path:
    return FOLDER / f"{name}.tcss"
