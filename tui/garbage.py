"""Python's search for cycles of garbage, no more often than this program needs it.

Left as it is, it begins after every 700 new objects, of which one frame makes thousands that refer
to nothing, and now and then goes through all that was imported: a tenth of what the screen costs.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000
"""Between two searches among them."""
SEARCHES: Final = (5, 4)
"""Of the newer before one of the older: with Python's own ten of ten, garbage that outlives its
first search lies there for minutes."""


def search_seldom() -> None:
    """From now on. For it more garbage is held: 92 MB were resident and not 87 after 25 minutes of
    a run with two frames a second and another view every ten seconds."""
    gc.set_threshold(NEW_OBJECTS, *SEARCHES)


def leave_out_what_is_there() -> None:
    """From now on no search goes through the objects that are there by now: they stay. A last one
    does, so that no garbage is among them: 43 to 54 ms of CPU time in a screen that attaches, which
    are not its first picture's to wait for."""
    gc.collect()
    gc.freeze()
