"""Notes: settings that cost something, or will, and are not what holds the run back.

Each is a pure function of one window, says one thing or nothing, and speaks only where what it says
was seen in this run. Costs are what was measured; a note whose cost nobody measured has none.
"""

from collections.abc import Callable

from ..findings import Note
from ..window import Window

NoteRule = Callable[[Window], Note | None]
