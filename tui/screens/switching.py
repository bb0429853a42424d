"""One picture at a time: another process's in its place, made beside the screen's thread."""

import threading
from collections.abc import Callable

from ..errors import GpuwatchError
from ..model.provider import SnapshotProvider

Make = Callable[[int], SnapshotProvider]
"""The picture of a process by its pid, not started. Raises a GpuwatchError that says why not."""


class Switch:
    """Holds the picture that is shown, and closes it in the end. May be used from any thread."""

    def __init__(self, picture: SnapshotProvider, make: Make | None = None) -> None:
        self.picture = picture
        self._make = make
        self._lock = threading.Lock()
        self._is_making = False
        self._is_closed = False

    @property
    def is_possible(self) -> bool:
        """Another process can be watched: this is no recording."""
        return self._make is not None

    def to(self, pid: int, told: Callable[[str], None]) -> None:
        """Watch this process instead. `told` is called on another thread when it is shown, with ""
        or with why it cannot be. While one is being made, no other is begun."""
        with self._lock:
            if self._make is None or self._is_making:
                return
            self._is_making = True
        run = threading.Thread(target=self._to, args=(self._make, pid, told), daemon=True)
        run.start()

    def close(self) -> None:
        """Let go of what is watched; what is still being made is closed when it is there."""
        with self._lock:
            self._is_closed = True
        self.picture.close()

    def _to(self, make: Make, pid: int, told: Callable[[str], None]) -> None:
        try:
            picture = make(pid)
        except GpuwatchError as error:
            with self._lock:
                self._is_making = False
            told(str(error))
            return
        picture.start()
        with self._lock:
            self._is_making = False
            if not self._is_closed:
                picture, self.picture = self.picture, picture
                told("")
        picture.close()
