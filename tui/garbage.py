"""Python's search for cycles of garbage, no more often than this program needs it.

Left as it is, it begins after every 700 new objects, of which one frame makes thousands that refer
to nothing, and now and then goes through all that was imported: a tenth of what the screen costs.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000
"""Between two searches. Cycles among so many hold a megabyte or two at most."""


def search_seldom() -> None:
    """From now on, and never among the objects that are there by now: they stay."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
