"""How long this thread was ready to run and the machine gave its core to others.

Kept out of a step's length: it is the neighbours' doing, and on a busy machine a hundred times what
is to be measured.
"""

import os


class RunQueue:
    """Of the thread that makes it, as Linux counts it; where it does not, always 0."""

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = None

    def waited_ns(self) -> int:
        """Since the thread began."""
        if self._file is None:
            return 0
        return int(os.pread(self._file, 64, 0).split()[1])
