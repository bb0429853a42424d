"""DataLoader workers, between two batches: only where a window of memory is asked for there.

A worker is a fork with the hooks of its parent, and does nothing of ours. While `gpuwatch memory
--host` asks, the parent writes so on a page that its forks share. A worker asks torch's own
watchdog before each batch whether its parent is alive; there the page is looked at (0.1 us). No
frame of ours is around the dataset's code, and a batch is let go by then. A spawned worker shares
no page and is not reached.
"""

import functools
import mmap
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from .. import clock
from ..circuit_breaker import is_users
from ..recorder import Recorder
from . import Detach, replace

if TYPE_CHECKING:
    from ..deep.worker_memory import WorkerWindow

MODULE = "torch"
NUMBER: Final = 0
"""Of the question: 0 before the first."""
_ASKER: Final = 1
_UNTIL_NS: Final = 2
_LENGTH: Final = 3
_STEM: Final = 64
"""Where the text begins, in bytes."""


class Board:
    """What is asked of workers. Shared with all forks; a rank that was forked writes on it too, so
    a worker obeys its own parent alone."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self.words = memoryview(self._memory)[:_STEM].cast("q")

    def ask(self, stem: str, until_ns: int) -> None:
        """Have the workers of this process trace until then (perf_counter_ns). `stem`: of the files
        for their answers."""
        text = os.fsencode(stem)[: mmap.PAGESIZE - _STEM]
        self._memory[_STEM : _STEM + len(text)] = text
        words = self.words
        words[_ASKER], words[_UNTIL_NS], words[_LENGTH] = os.getpid(), until_ns, len(text)
        words[NUMBER] += 1

    def end(self) -> None:
        """Who asked has left: they trace no further."""
        self.words[_UNTIL_NS] = 0

    @property
    def is_ended(self) -> bool:
        """Before its time."""
        return self.words[_UNTIL_NS] == 0

    def asked(self) -> tuple[str, int] | None:
        """Stem, and until when; None: not of this process, or no more."""
        words = self.words
        if words[_ASKER] != os.getppid() or clock.now_ns() >= words[_UNTIL_NS]:
            return None
        return os.fsdecode(self._memory[_STEM : _STEM + words[_LENGTH]]), words[_UNTIL_NS]


board: Board | None = None
"""None without hooks, and where nothing forks."""


def attach(recorder: Recorder) -> Detach:
    """Hook the watchdog, where this torch has it."""
    global board
    module: Any = sys.modules.get("torch.utils.data._utils.worker")
    watchdog: Any = getattr(module, "ManagerWatchdog", None)
    original = None if watchdog is None else vars(watchdog).get("is_alive")
    if original is None or not hasattr(os, "fork"):
        return lambda: ()
    shared = board = board or Board()
    words = shared.words
    taken = words[NUMBER]
    window: WorkerWindow | None = None

    @functools.wraps(original)
    def is_alive(self: Any) -> Any:
        nonlocal taken, window
        if window is not None or words[NUMBER] != taken:
            try:
                if window is not None and (shared.is_ended or words[NUMBER] != taken):
                    window.cut()
                    window = None
                taken, window = words[NUMBER], _turned(shared, window)
            except Exception as error:
                window = None
                if is_users(error):
                    raise
        return original(self)

    return replace(original, is_alive, [(watchdog, "is_alive")])


def _turned(shared: Board, window: "WorkerWindow | None") -> "WorkerWindow | None":
    """The window that is open behind this moment."""
    if window is None:
        asked = shared.asked()
        if asked is None:
            return None
        from ..deep.worker_memory import WorkerWindow

        window = WorkerWindow(*asked)
    return window if window.turn() else None
