"""The state page of this process: made when the probe is armed, gone with the process.

`wire.page` has the layout. All that is written in it is the publisher's.
"""

import mmap
import os
from typing import TYPE_CHECKING

from .descriptors import check_spare, identity_of
from .wire import page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .rows import Step


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
        self._rows = 0
        self.words[page.WORD_STATE] = page.STATE_ARMED
        self.say(hello)

    def say(self, hello: bytes) -> None:
        """Replace the hello. Who reads it half done sees broken JSON and tries again."""
        end = page.HELLO_OFFSET + len(hello)
        self._map[page.HELLO_OFFSET : end] = hello
        header_end = page.HEADER_OFFSET + page.HEADER.size
        self._map[page.HEADER_OFFSET : header_end] = page.pack_header(len(hello))

    def add_rows(self, steps: "Sequence[Step]") -> None:
        """Add steps to the ring that outlives a hang and is read after a kill."""
        pack_into, ring = page.ROW.pack_into, self._map
        for at, step in enumerate(steps[-page.RING_ROWS :], self._rows):
            pack_into(
                ring,
                page.RING_OFFSET + at % page.RING_ROWS * page.ROW.size,
                step.number,
                step.start_ns,
                step.end_ns,
                step.data_ns + step.startup_ns,
                step.forward_ns,
                step.backward_ns,
                step.optimizer_ns,
                step.other_ns,
                step.evaluation_ns
                + step.checkpoint_ns
                + step.compile_ns
                + sum(step.phases.values()),
                step.number,
            )
        if steps:
            self._rows += min(len(steps), page.RING_ROWS)
            self.words[page.WORD_ROWS] = self._rows
            self.words[page.WORD_STEPS] = steps[-1].number

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
