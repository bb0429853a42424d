"""The recorder's new marks onto the state page, turn by turn, and what stands beside them.

The page is what is sent to monitors, and what others of this machine read. On the publisher's
thread; the training thread goes on putting marks meanwhile.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from typing import Any, Final

from . import clock
from .figures import StepCount, unseen
from .loaders import PADDING
from .recorder import ENTRIES, MOST_RARE, Recorder
from .state_page import StatePage
from .wire import marks, page

MOST_LOADERS: Final = 32

Rare = tuple[int, int, int, Any]
"""As in `Recorder.rare`: its number, kind, argument and what it is about."""


class MarkFeed:
    """Of one process; nothing in here is called by two threads."""

    def __init__(self, recorder: Recorder, state_page: StatePage) -> None:
        self._recorder = recorder
        self._page = state_page
        self.until = 0
        """Marks before this number are on the page."""
        self.newest_ns = 0
        """When the last of them was put."""
        self.count = StepCount()
        self.rare: deque[Rare] = deque(maxlen=MOST_RARE)
        """What stands beside the marks on the page."""
        self.loaders: dict[int, tuple[int, Any, bool, int]] = {}
        """The newest description of each loader, by its key."""
        self.marks_per_s = 0.0
        """Of the last turn."""
        self.sees_padding = False
        """By the batch that was looked at last."""
        self._taken = 0
        """Marks of the time `newest_ns`: one that is put behind another has its time, and may come
        after the turn that took that."""
        self._asked = 0
        """Entries that the last turn brought."""
        self._turned_ns: int | None = None
        self._made_ns = clock.now_ns()

    def put(self, now_ns: int) -> None:
        """Put what is new since the last call on the page, and count its steps."""
        before, since_ns = self.until, self._turned_ns
        seen_ns = self.newest_ns or self._made_ns
        times, words = self._new_marks()
        self._page.put(before, times, words)
        self.count.add(words.tobytes(), unseen(times, seen_ns))
        self.until = before + len(times)
        self._page.words[page.WORD_MARKS] = self.until
        if since_ns is not None and now_ns > since_ns:
            self.marks_per_s = (self.until - before) / (now_ns - since_ns) * 1e9
        self._turned_ns = now_ns
        newest = self.rare[-1][0] if self.rare else 0
        for one in list(self._recorder.rare):
            if one[0] > newest:
                self.rare.append(one)
                if one[1] == marks.LOADER:
                    self._keep_loader(*one)
                elif one[1] == marks.BATCH:
                    self.sees_padding = one[3][PADDING] is not None

    def _new_marks(self) -> "tuple[array[int], array[int]]":
        """Times and words since the last turn. A first mark of 0 stands for those that are lost:
        the recorder has had more than it holds."""
        wanted = max(256, self._asked + self._asked // 4)
        while True:
            entries = self._recorder.tail(wanted)
            times, words = entries[0::2], entries[1::2]
            at = bisect_left(times, self.newest_ns)
            if at or wanted >= ENTRIES or len(entries) < wanted - 2:
                break
            wanted = min(ENTRIES, 4 * wanted)
        at += min(self._taken, bisect_right(times, self.newest_ns) - at)
        times, words = times[at:], words[at:]
        self._asked = 2 * len(times)
        if times:
            of_newest = len(times) - bisect_left(times, times[-1])
            self._taken = of_newest + (self._taken if times[-1] == self.newest_ns else 0)
            self.newest_ns = times[-1]
        if not at and len(entries) >= ENTRIES - 2:
            self._page.words[page.WORD_LOST_MARKS] += 1
            times[0] = words[0] = 0
        return times, words

    def _keep_loader(self, number: int, _: int, iterator: int, seen: Any) -> None:
        row, with_grad = seen
        self.loaders.pop(row[0], None)
        if len(self.loaders) >= MOST_LOADERS:
            del self.loaders[next(iter(self.loaders))]
        self.loaders[row[0]] = number, row, with_grad, iterator
