"""A training's DataLoader workers, one after the other."""

from contextlib import suppress

import psutil

from tui.sources.descendants import Descendants
from tui.sources.kinds import is_worker


class LoaderWorkers:
    """Remembers whose turn it was."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._below = Descendants(pid)
        self._last = 0

    def pids(self) -> tuple[int, ...]:
        """Those that are there now."""
        found = []
        for child in self._below.look():
            with suppress(psutil.Error):  # it may end while we look, and the target too
                if is_worker(child, psutil.Process(self._pid)):
                    found.append(child.pid)
        return tuple(sorted(found))

    def next_of(self, pids: tuple[int, ...]) -> int:
        """The one after the last one; each gets its turn while they stay the same."""
        later = [pid for pid in pids if pid > self._last]
        self._last = later[0] if later else pids[0]
        return self._last
