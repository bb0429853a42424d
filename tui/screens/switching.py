"""Which process is watched: another in its place, connected beside the screen's thread."""

import threading
from collections.abc import Callable

from ..errors import GpuwatchError
from ..model.provider import TimeTravelProvider
from ..model.snapshot import Rank

Make = Callable[[Rank], TimeTravelProvider]
"""Watches another rank of the job that is shown; not started. Raises a GpuwatchError that says why
it cannot."""


class Switch:
    """Holds the provider that is shown, and closes it in the end. May be used from any thread."""

    def __init__(self, provider: TimeTravelProvider, make: Make | None = None) -> None:
        self.provider = provider
        self._make = make
        self._lock = threading.Lock()
        self._is_making = False
        self._is_closed = False

    @property
    def is_possible(self) -> bool:
        """Another process can be watched: this is no recording."""
        return self._make is not None

    def to(self, rank: Rank, done: Callable[[str], object]) -> bool:
        """Watch this rank instead. `done` is called on another thread when it is shown, with "" or
        with why it cannot be. While one is being made, no other is begun; whether this one is."""
        with self._lock:
            if self._make is None or self._is_making:
                return False
            self._is_making = True
        run = threading.Thread(target=self._to, args=(self._make, rank, done), daemon=True)
        run.start()
        return True

    def close(self) -> None:
        """Let go of what is watched; what is still being made is closed when it is there."""
        with self._lock:
            self._is_closed = True
        self.provider.close()

    def _to(self, make: Make, rank: Rank, done: Callable[[str], object]) -> None:
        try:
            provider = make(rank)
        except GpuwatchError as error:
            with self._lock:
                self._is_making = False
            done(str(error))
            return
        provider.start()
        with self._lock:
            self._is_making = False
            if not self._is_closed:
                provider, self.provider = self.provider, provider
                done("")
        provider.close()
