"""Writes a recording beside a running session, on a thread of its own: a disk may take its time."""

import os
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import IO, Final

import msgspec

from ..private_files import only_ours
from . import format as form
from .chunks import ChunkWriter
from .format import Entry, Header, Past, frame
from .tape import Tape, rows_of

EVERY_S: Final = 1.0
"""What a crash may cost."""
LAST_WRITE_S: Final = 2.0
"""Longest that `stop` waits for the disk."""
MOST_ROWS_WAITING: Final = 100_000
"""Minutes of a disk that does not answer."""
ROWS_A_CHUNK: Final = 5_000
"""Steps and the like. Keeps what a reader decodes at once small."""


class RecordingWriter:
    """Fills an unbuffered file with whole frames. Raises OSError where it takes no more."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file = file
        self._chunks = ChunkWriter()
        self._deflate = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
        self._until_ns = header.begins_ns
        data = msgspec.json.encode(header)
        prefix = form.PREFIX.pack(form.MAGIC, form.VERSION, len(data))
        self._put(prefix + data + form.CHECK.pack(zlib.crc32(data)))

    def write(self, entries: Sequence[Entry]) -> None:
        """Write entries and flush. Raises OverflowError for one that is too large."""
        few, rows = list[Entry](), 0
        for number, entry in enumerate(entries, 1):
            few.append(entry)
            rows += rows_of(entry)
            if rows >= ROWS_A_CHUNK or number == len(entries):
                data = self._deflate.compress(self._chunks.pack(few))
                data += self._deflate.flush(zlib.Z_SYNC_FLUSH)
                newest_ns = min(max(one.t_ns for one in few), form.LATEST_NS - 1)
                self._until_ns = max(self._until_ns, newest_ns)
                self._put(frame(data.removesuffix(form.FLUSHED), self._until_ns))
                few, rows = [], 0

    def end(self) -> None:
        """Say that nothing is missing at the end."""
        self._put(frame(b"", self._until_ns))

    def _put(self, data: bytes) -> None:
        before = self._file.tell()
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            try:
                self._file.truncate(before)
            except OSError:
                pass  # a reader leaves out an unfinished frame
            raise


class Recorder:
    """One recording, from `start` to `stop` or to a fault."""

    def __init__(
        self,
        path: Path,
        tape: Tape,
        header: Callable[[int | None], Header],
        past: Callable[[int], Past | None],
        overwrite: bool,
    ) -> None:
        """`header` and `past` get the time at which the tape begins. Without `overwrite` a file
        that is there is a fault."""
        self.path = path
        self.fault: str | None = None
        """Why nothing is written any more."""
        self._tape = tape
        self._header = header
        self._past = past
        self._mode = "wb" if overwrite else "xb"
        self._waiting: deque[Entry] = deque()
        self._rows_waiting = 0
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
        self.ask_to_stop()
        self._thread.join(LAST_WRITE_S)
        if self._thread.is_alive() and self.fault is None:
            self.fault = "the disk does not answer"

    def _run(self) -> None:
        try:
            with open(self.path, self._mode, buffering=0, opener=only_ours) as file:
                begins_ns = self._tape.hand_over(self._take)
                writer = RecordingWriter(file, self._header(begins_ns))
                past = None if begins_ns is None else self._past(begins_ns)
                if past is not None:
                    writer.write([past])
                self._write(writer)
                while not self._stop.wait(EVERY_S):
                    self._write(writer)
                self._tape.let_go()
                self._write(writer)
                writer.end()
        except OSError as error:
            self.fault = os.strerror(error.errno) if error.errno else str(error)
        except (OverflowError, ValueError) as error:
            self.fault = str(error)  # an entry that is too large, or text that is none
        finally:
            self._tape.let_go()

    def _take(self, entry: Entry) -> None:
        """Called by whoever sees something; the disk is not its business."""
        self._rows_waiting += rows_of(entry)
        self._dropped |= self._rows_waiting > MOST_ROWS_WAITING
        if not self._dropped:
            self._waiting.append(entry)

    def _write(self, writer: RecordingWriter) -> None:
        entries = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._rows_waiting = 0
        writer.write(entries)
        if self._dropped:
            raise OSError("the disk is too slow")
