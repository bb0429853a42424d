"""Writes a recording beside a running session, on a thread of its own: a disk may take its time."""

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Final

from .chunks import TooLargeError
from .format import Entry, Header
from .tape import Tape
from .weight import rows_of
from .writer import RecordingWriter

EVERY_S: Final = 1.0
"""What a crash may cost."""
LAST_WRITE_S: Final = 2.0
"""Longest that `stop` waits for the disk."""
MOST_ROWS_WAITING: Final = 100_000
"""Minutes of a disk that does not answer."""


class Recorder:
    """One recording, from `start` to `stop` or to what goes wrong, which is told by `fault`."""

    def __init__(
        self, path: Path, tape: Tape, header: Callable[[int | None], Header], overwrite: bool
    ) -> None:
        """`header` is asked on the recorder's thread, with the time at which the tape begins.

        A file that is there already is a fault unless `overwrite` says otherwise.
        """
        self.path = path
        self.fault: str | None = None
        """Why nothing is written any more."""
        self._tape = tape
        self._header = header
        self._mode = "wb" if overwrite else "xb"
        self._waiting: deque[Entry] = deque()
        self._rows = 0
        """Of those that wait."""
        self._dropped = False
        self._stop = Event()
        self._thread = Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """The file is closed, for good or for a fault."""
        return not self._thread.is_alive()

    def ask_to_stop(self) -> None:
        """Write what is waiting and close the file; returns at once."""
        self._stop.set()

    def stop(self) -> None:
        """The same, and wait for it. May be called twice."""
        self._stop.set()
        self._thread.join(LAST_WRITE_S)
        if self._thread.is_alive() and self.fault is None:
            self.fault = "the disk does not answer"

    def _run(self) -> None:
        try:
            with self.path.open(self._mode, buffering=0) as file:
                begins_ns = self._tape.hand_over(self._take)
                writer = RecordingWriter(file, self._header(begins_ns))
                self._write(writer)
                while not self._stop.wait(EVERY_S):
                    self._write(writer)
                self._tape.let_go()
                self._write(writer)
                writer.end()
        except OSError as error:
            self.fault = os.strerror(error.errno) if error.errno else str(error)
        except TooLargeError as error:
            self.fault = str(error)
        finally:
            self._tape.let_go()

    def _take(self, entry: Entry) -> None:
        """Called by whoever sees something; the disk is not its business."""
        self._rows += rows_of(entry)
        if self._rows > MOST_ROWS_WAITING:
            self._dropped = True
        if not self._dropped:
            self._waiting.append(entry)

    def _write(self, writer: RecordingWriter) -> None:
        entries = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._rows = 0
        if entries:
            writer.write(entries)
        if self._dropped:
            raise OSError("the disk is too slow")
