"""What crosses from the training process to the monitor, and nothing else.

`marks` are the kinds of mark, `page` is the layout of the state page. How the messages on the
socket are decoded is the monitor's (`tui/messages.py`). The monitor imports this package and no
other part of `probe`.
"""

from typing import Final

UNCOUNTED: Final = "#importlib._bootstrap"
"""Behind a file's name in the frames of our own hooks: `warnings.warn(stacklevel=2)` and logging
leave out frames of a file that has "importlib" and "_bootstrap" in its name, as those of the import
machinery. A monitor cuts it off."""
