"""Where the training thread is, a thousand times a second, while operators are recorded.

On a thread of ours. A thread that computes in C shows only where it gives the lock up, so shares of
these looks would be wrong; each is true of its moment, and a long gap has several.
"""

import sys
from threading import Event
from types import FrameType
from typing import Any, Final

from .. import clock
from ..own_thread import start_thread

MOST_LOOKS: Final = 5_000
MOST_PLACES: Final = 500
"""Different stacks: with twelve frames of 340 bytes each they have half of a message (4 MB)."""
MOST_FRAMES: Final = 12
LOOK_S: Final = 0.001


class Looks:
    """Where one thread is, a thousand times a second, on a thread of its own."""

    def __init__(self, ident: int) -> None:
        self._ident = ident
        self._stop = Event()
        self._ended = Event()
        self._places: dict[tuple[tuple[Any, int], ...], int] = {}
        self.taken: list[tuple[int, int]] = []
        """(perf_counter_ns, index of the place)."""

    def start(self) -> None:
        """Raises RuntimeError where no thread can be had."""
        start_thread(self._run)

    def stop(self) -> None:
        """Waits at most for one look."""
        self._stop.set()
        self._ended.wait(0.1)

    def places(self) -> list[list[tuple[str, str, int]]]:
        """Function, file and line of each place's frames, innermost first."""
        return [
            [(code.co_name[:120], code.co_filename[-200:], line) for code, line in place]
            for place in list(self._places)[:MOST_PLACES]
        ]

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and len(self.taken) < MOST_LOOKS:
                frame = sys._current_frames().get(self._ident)
                now_ns = clock.now_ns()
                if frame is not None:
                    self._keep(now_ns, frame)
                del frame  # what it holds must not live longer for us
                self._stop.wait(LOOK_S)
        finally:
            self._ended.set()

    def _keep(self, now_ns: int, frame: FrameType | None) -> None:
        place: list[tuple[Any, int]] = []
        while frame is not None and len(place) < MOST_FRAMES:
            place.append((frame.f_code, frame.f_lineno or 0))
            frame = frame.f_back
        index = self._places.setdefault(tuple(place), len(self._places))
        if index < MOST_PLACES:
            self.taken.append((now_ns, index))
