"""What is asked of DataLoader workers, on a page that their parent shares with its forks."""

import mmap
import os
from typing import Final

from . import clock

NUMBER: Final = 0
"""Of the question: 0 before the first."""
_ASKER: Final = 1
_UNTIL_NS: Final = 2
_LENGTH: Final = 3
_STEM: Final = 64
"""Where the text begins, in bytes."""


class Board:
    """What is asked of workers. Shared with all forks; a rank that was forked writes on it too, so
    a worker obeys its own parent alone."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self.words = memoryview(self._memory)[:_STEM].cast("q")

    def ask(self, stem: str, until_ns: int) -> None:
        """Have the workers of this process trace until then (perf_counter_ns). `stem`: of the files
        for their answers."""
        text = os.fsencode(stem)[: mmap.PAGESIZE - _STEM]
        self._memory[_STEM : _STEM + len(text)] = text
        words = self.words
        words[_ASKER], words[_UNTIL_NS], words[_LENGTH] = os.getpid(), until_ns, len(text)
        words[NUMBER] += 1

    def end(self) -> None:
        """Who asked has left: they trace no further."""
        self.words[_UNTIL_NS] = 0

    @property
    def is_ended(self) -> bool:
        """Before its time."""
        return self.words[_UNTIL_NS] == 0

    def asked(self) -> tuple[str, int] | None:
        """Stem, and until when; None: not of this process, or no more."""
        words = self.words
        if words[_ASKER] != os.getppid() or clock.now_ns() >= words[_UNTIL_NS]:
            return None
        return os.fsdecode(self._memory[_STEM : _STEM + words[_LENGTH]]), words[_UNTIL_NS]


board: Board | None = None
"""None without hooks, and where nothing forks."""


def shared_board() -> Board:
    """The process's one, made by who hooks workers first."""
    global board
    board = board or Board()
    return board
