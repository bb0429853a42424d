"""The state page of this process: made when the probe is armed, taken away with the process.

`wire.page` has the layout. All that is written in it is the publisher's.
"""

import mmap
import os

from .descriptors import check_spare, identity_of
from .wire import page
from .wire.marks import MARK_BYTES

_kept: list[mmap.mmap] = []


class StatePage:
    """A memfd, mapped. Raises OSError where the system has none."""

    def __init__(self, hello: bytes) -> None:
        fd = os.memfd_create(page.NAME, os.MFD_CLOEXEC)
        try:
            check_spare(fd)
            os.ftruncate(fd, page.SIZE)
            self._map = mmap.mmap(fd, page.SIZE)
            self._file = identity_of(fd)
            self._fd = self._own_descriptor(fd)
        finally:
            os.close(fd)  # the mapping holds a descriptor of its own, which is the one to be found
        self.words: memoryview[int] = memoryview(self._map)[: page.WORDS * 8].cast("Q")
        self.words[page.WORD_STATE] = page.STATE_ARMED
        self.write_hello(hello)

    def write_hello(self, hello: bytes) -> None:
        """Replace the hello. Who reads it half done sees broken JSON and tries again."""
        end = page.HELLO_OFFSET + len(hello)
        self._map[page.HELLO_OFFSET : end] = hello
        header_end = page.HEADER_OFFSET + page.HEADER.size
        self._map[page.HEADER_OFFSET : header_end] = page.pack_header(len(hello))

    def put(self, first: int, body: bytes) -> None:
        """Write marks into the ring, at most as many as it holds; `first` is their first number."""
        at = 0
        for offset, size in page.places(first, first + len(body) // MARK_BYTES):
            self._map[offset : offset + size] = body[at : at + size]
            at += size

    def marks(self, since: int, until: int) -> bytes:
        """The marks from a number up to another, at most as many as the ring holds: one copy."""
        places = page.places(since, until)
        return b"".join([self._map[offset : offset + size] for offset, size in places])

    def close(self, state: int) -> None:
        """Say how it ended and take the page away. Nobody may write words any more."""
        self.words[page.WORD_STATE] = state
        self.words.release()
        if identity_of(self._fd) == self._file:
            self._map.close()
        else:
            _kept.append(self._map)  # it would close what is another file's by now

    def _own_descriptor(self, made: int) -> int:
        """The mapping's, which it keeps to itself: the lowest that was free after `made`."""
        for number in range(3, made + 64):
            if number != made and identity_of(number) == self._file:
                return number
        return -1
