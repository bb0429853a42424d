"""Looking for the probe in a program that was started, or in what that has started."""

from typing import Final

import psutil

from .. import clock
from ..discovery.state_page import pages_of
from ..discovery.targets import is_own

LOOK_NS: Final = 200_000_000


class ProbeBelow:
    """Of several ranks the first one of this machine."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._next_ns = 0
        self.pid: int | None = None
        """The process to watch; None as long as there is none."""

    def is_there(self) -> bool:
        """Look, if it is time to."""
        now_ns = clock.now_ns()
        if self.pid is None and now_ns >= self._next_ns:
            self._next_ns = now_ns + LOOK_NS
            self.pid = next(filter(_is_first, self._family()), None)
        return self.pid is not None

    def _family(self) -> list[int]:
        try:
            return [self._root.pid, *(child.pid for child in self._root.children(recursive=True))]
        except psutil.Error:
            return []  # it has just ended


def _is_first(pid: int) -> bool:
    try:
        pages = pages_of(pid)
    except OSError:
        return False
    own = [opened.hello for opened in pages if is_own(opened.hello, pid)]
    for opened in pages:
        opened.close()
    return any(hello.local_rank in (None, 0) for hello in own)
