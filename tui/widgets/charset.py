"""Which characters the terminal can show.

Everything is composed in Unicode, one character a cell. A terminal that cannot show it gets the
same cells translated one for one at the very end, so no width ever changes.
"""

from enum import Enum
from typing import Final

EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
"""Levels of the lower part of a cell."""
SHADE: Final = "░"

_BRAILLE: Final = range(0x2801, 0x2900)
_CONSOLE: Final[dict[int, int | str | None]] = {
    **str.maketrans("▁▂▃▅▆▇▏▎▍▌▋▊▉", "  ▄▄▄█  ▌▌▌██"),
    **dict.fromkeys(_BRAILLE, "·"),
}
"""The Linux console's font (CP437) has half blocks and shades only."""

_ASCII: Final[dict[int, int | str | None]] = {
    **str.maketrans(
        "▁▂▃▄▅▆▇█░▒▓▏▎▍▌▋▊▉─│┴└┤┌├·…←→↵≤≥×±–−▲▼◆●○■▸╱╲╳┄✓µ↑↓",
        "..:::###:+=  #####-|++|+|-.<>><>x+--!v**o#>/\\x-vu^v",
    ),
    **dict.fromkeys(_BRAILLE, "."),
}


class Charset(Enum):
    """A repertoire of characters."""

    UNICODE = "unicode"
    CONSOLE = "console"
    ASCII = "ascii"

    def translate(self, text: str) -> str:
        """The text as this terminal can show it: printable, and as many characters as before."""
        if not text.isprintable():
            text = "".join(c if c.isprintable() else "?" for c in text)
        if self is Charset.UNICODE or text.isascii():
            return text
        if self is Charset.CONSOLE:
            return text.translate(_CONSOLE)
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
