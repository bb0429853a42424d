"""What a program writes, to the terminal, or kept while a screen has it."""

import os
import threading
from collections import deque
from typing import Final

KEPT_BYTES: Final = 4 * 1024 * 1024
"""Of the newest: some 50,000 lines, more than a terminal scrolls back."""


class HeldOutput:
    """Writes to the terminal `fd`. `hold`, `release` and `write` may come from different threads.

    A terminal that takes nothing holds the program up, as it would without us.
    """

    def __init__(self, fd: int, kept_bytes: int = KEPT_BYTES) -> None:
        self._fd = fd
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._held = False
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0

    def write(self, part: bytes) -> None:
        """Show it, or keep it."""
        with self._lock:
            if not self._held:
                _write_all(self._fd, part)
                return
            self._parts.append(part)
            self._size += len(part)
            while self._size > self._kept_bytes:
                oldest = len(self._parts.popleft())
                self._size -= oldest
                self._dropped += oldest

    def hold(self) -> None:
        """Keep what comes from now on."""
        with self._lock:
            self._held = True

    def release(self) -> None:
        """Show what was kept, and everything from now on."""
        with self._lock:
            self._held = False
            if self._dropped:
                said = f"the oldest {self._dropped / 1e3:,.0f} KB of its output were not kept"
                _write_all(self._fd, f"gpuwatch: {said}\r\n".encode())
            for part in self._parts:
                _write_all(self._fd, part)
            self._parts.clear()
            self._size = self._dropped = 0


def _write_all(fd: int, part: bytes) -> None:
    """Lost without a word where the terminal has gone."""
    try:
        while part:
            part = part[os.write(fd, part) :]
    except OSError:
        return
