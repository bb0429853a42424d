"""The state page, and what of the run's descriptors and memory the probe may take for it.

`wire.page` has the layout; all that is written in it is the publisher's. Descriptors are the run's
first: what the probe takes is spare and its own. A run may be at its limit, and would fail where it
would not have without us; and it may close what it never opened (`os.closerange` in a daemon),
after which our number is another file's.
"""

import mmap
import os
from array import array
from typing import Final

from .wire import page
from .wire.marks import MARK_BYTES

SPARE: Final = 32
"""So many stay free for the run, or the probe opens nothing."""
SPARE_BYTES: Final = 512 * 1024 * 1024
"""Of address space, where that is limited: a thread reserves 72 MB of it, nearly all unused."""
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

    def put(self, first: int, *columns: "array[int] | bytes") -> None:
        """Write times and words of marks into the ring, at most as many as it holds; `first` is
        their first number."""
        body = memoryview(b"".join(columns))
        at = 0
        for offset, size in page.places(first, first + len(body) // MARK_BYTES):
            self._map[offset : offset + size] = body[at : at + size]
            at += size

    def marks(self, since: int, until: int) -> list[bytes]:
        """The marks from a number up to another, at most as many as the ring holds: one copy, in
        pieces."""
        return [self._map[at : at + size] for at, size in page.places(since, until)]

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


def check_address_space() -> None:
    """Raises OSError where the run is near a limit of it."""
    with open("/proc/self/limits", "rb") as limits:
        limit = next(line.split()[3] for line in limits if line.startswith(b"Max address space"))
    if limit == b"unlimited":
        return
    with open("/proc/self/statm", "rb") as statm:
        taken = int(statm.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    if taken + SPARE_BYTES > int(limit):
        raise OSError("the address space is short (ulimit -v)")


class NoneSpare(OSError):
    """The run is near its limit of descriptors."""

    def __init__(self) -> None:
        super().__init__(f"fewer than {SPARE} file descriptors are free (ulimit -n)")


def check_spare(newest: int) -> None:
    """Raises NoneSpare if the descriptor just got, the lowest that was free, leaves too few."""
    limit = os.sysconf("SC_OPEN_MAX")  # RLIMIT_NOFILE, without a module to load for it
    if 0 <= limit <= newest + SPARE:
        raise NoneSpare


def is_spare(some: int) -> bool:
    """Whether one more may be taken; `some` is any that is open."""
    try:
        newest = os.dup(some)
    except OSError:
        return False
    try:
        check_spare(newest)
    except NoneSpare:
        return False
    finally:
        os.close(newest)
    return True


def identity_of(descriptor: int) -> tuple[int, int] | None:
    """What file it is, to be compared later; None where it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino
