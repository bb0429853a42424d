"""How the screen shall look where a person said so; what they did not say the terminal decides."""

from dataclasses import dataclass
from typing import Final

THEMES: Final = ("dark", "light", "contrast", "terminal")
"""In the order in which `T` goes through them; "terminal": the terminal's own palette."""


@dataclass(frozen=True, slots=True)
class Appearance:
    """The options of the commands that open a screen."""

    theme: str = THEMES[0]
    ascii_only: bool = False
    colour: bool = True
    mouse: bool = False
    """Off: the terminal's own selection of text goes on working."""
    frames_s: float | None = None
    """Frames a second; None: 4, or 2 over SSH."""


def after(theme: str) -> str:
    """The next theme, the first after the last."""
    return THEMES[(THEMES.index(theme) + 1) % len(THEMES)]
