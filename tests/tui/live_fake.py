"""The screen on the fake run with a real clock: a program for tests that need a real terminal.

`python -m tests.tui.live_fake [hang | crash]`: after the first frames the event loop blocks, or a
frame fails.
"""

import os
import sys
import time
from contextlib import suppress

from gpuwatch.tui.app import run_screen
from gpuwatch.tui.model.snapshot import Snapshot
from tests.tui.fake_run import START, S, WithHistory, snapshot_at


class LiveFake(WithHistory):
    """The fake run, played now."""

    def __init__(self, ends: str) -> None:
        super().__init__()
        self._began = time.perf_counter_ns()
        self._ends = ends
        self._frames = 0

    def snapshot(self) -> Snapshot:
        """The run, 400 s in and going on."""
        self._frames += 1
        if self._frames > 5 and self._ends == "hang":
            time.sleep(60)
        if self._frames > 5 and self._ends == "crash":
            raise ZeroDivisionError("a frame\nfailed")
        return snapshot_at(START + 400 * S + time.perf_counter_ns() - self._began)

    def close(self) -> None:
        """Say that the way out was the orderly one."""
        with suppress(OSError):  # the terminal may be gone
            os.write(1, b"closed\n")


if __name__ == "__main__":
    sys.exit(run_screen(LiveFake(sys.argv[1] if len(sys.argv) > 1 else "")))
