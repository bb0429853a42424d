"""DataLoader workers, between two batches: only where a window of memory is asked for there.

A worker is a fork with the hooks of its parent, and does nothing of ours. While `gpuwatch memory
--host` asks, the parent writes so on a page that its forks share. A worker asks torch's own
watchdog before each batch whether its parent is alive; there the page is looked at (0.1 us). No
frame of ours is around the dataset's code, and a batch is let go by then. A spawned worker shares
no page and is not reached.
"""

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

from ..circuit_breaker import is_users
from ..recorder import Recorder
from ..worker_board import NUMBER, Board, shared_board
from . import Detach, replace

if TYPE_CHECKING:
    from ..deep.worker_memory import WorkerWindow

MODULE = "torch"


def attach(recorder: Recorder) -> Detach:
    """Hook the watchdog, where this torch has it."""
    module: Any = sys.modules.get("torch.utils.data._utils.worker")
    watchdog: Any = getattr(module, "ManagerWatchdog", None)
    original = None if watchdog is None else vars(watchdog).get("is_alive")
    if original is None or not hasattr(os, "fork"):
        return lambda: ()
    shared = shared_board()
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
