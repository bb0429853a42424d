"""The guard: what fails inside the probe ends the watching, never the training."""

import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Final

from .encodable import encodable
from .interrupts import is_users

MOST_TEXT: Final = 300
"""Characters of what an error says: it goes onto one line, and onto the state page."""


class Fuse:
    """Blows once. As a context manager it swallows what fails inside and blows.

    The hot path calls `trip` from its own handler (a context manager costs 0.2 us).
    """

    def __init__(self, on_blown: Callable[[], None]) -> None:
        self._on_blown = on_blown
        self.fault: str | None = None
        """Why the probe is disarmed; None while it is whole."""

    def trip(self, error: BaseException) -> None:
        """Disarm the probe, and say so on one line of stderr: only the first time.

        Raises what the program's own code raised while ours was running, whether disarmed or not.
        """
        if is_users(error):
            raise error
        if self.fault is not None:
            return
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {encodable(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        self.fault = f"{type(error).__name__}: {_text(error)}{place}"
        for tell in (self._on_blown, self._say):
            try:
                tell()
            except Exception as failure:
                if is_users(failure):
                    raise
                # stderr is closed, its disk full, or what stands there is the user's own

    def _say(self) -> None:
        if sys.stderr is not None:
            line = f"gpuwatch: the probe stopped watching ({self.fault}); the run goes on.\n"
            sys.stderr.write(line)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or is_users(error):
            return False  # KeyboardInterrupt and SystemExit are the user's
        self.trip(error)
        return True


def _text(error: BaseException) -> str:
    """What an error says, on one line; a class of the user's may fail at that as well."""
    try:
        return encodable(" ".join(str(error).split())[:MOST_TEXT])
    except Exception:
        return "it cannot say why"
