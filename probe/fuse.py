"""The guard: what fails inside the probe ends the watching, never the training."""

import sys
import traceback
from collections.abc import Callable
from types import TracebackType


class Fuse:
    """Blows once. As a context manager it swallows what fails inside and blows.

    The hot path calls `trip` from its own handler (a context manager costs 0.2 us).
    """

    def __init__(self, on_blown: Callable[[], None]) -> None:
        self._on_blown = on_blown
        self.fault: str | None = None
        """Why the probe is disarmed; None while it is whole."""

    def trip(self, error: BaseException) -> None:
        """Disarm the probe, and say so on one line of stderr: only the first time."""
        if self.fault is not None:
            return
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        self.fault = f"{type(error).__name__}: {error}{place}"
        self._on_blown()
        if sys.stderr is not None:
            line = f"gpuwatch: the probe stopped watching ({self.fault}); the run goes on.\n"
            try:
                sys.stderr.write(line)
            except (OSError, ValueError):
                pass  # stderr is closed or its disk is full: the monitor still shows the fault

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False  # KeyboardInterrupt and SystemExit are the user's
        self.trip(error)
        return True
