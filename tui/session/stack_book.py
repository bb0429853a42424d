"""Stack samples of the last minute, and where the main thread was last."""

from collections import deque
from collections.abc import Collection
from typing import Final, NamedTuple

from tui.observations import StackCount, StacksSeen
from tui.session.dump_book import DumpBook
from tui.session.workers_at import workers_at
from tui.sources.frames import way_to, worth_naming
from tui.verdict.window import SeenBy, WorkersAt

SPAN_NS: Final = 60_000_000_000
"""The window of the verdict; a chunk is a second or so."""
HELD_CHUNKS: Final = 240
"""Bounds the memory when chunks come faster than that: some hundred stacks each."""
FRESH_NS: Final = 10_000_000_000
"""An older sample does not say where the thread is now."""


class Where(NamedTuple):
    """Where the main thread is."""

    frame: str | None
    """The innermost frame worth naming; None when nobody knows."""
    way: tuple[str, ...]
    """How it came there: a few frames, outermost first."""
    seen_by: SeenBy
    workers: tuple[WorkersAt, ...] = ()
    """Where the loader's workers are."""


class StackBook:
    """Chunks in time order; and what the probe itself saw."""

    def __init__(self) -> None:
        self.dumps = DumpBook()
        self._chunks: deque[StacksSeen] = deque(maxlen=HELD_CHUNKS)

    def seen(self, seen: StacksSeen) -> None:
        """Take a chunk."""
        self._chunks.append(seen)
        while seen.t_ns - self._chunks[0].t_ns > SPAN_NS:
            self._chunks.popleft()

    @property
    def chunks(self) -> Collection[StacksSeen]:
        """Those of the last minute, oldest first."""
        return self._chunks

    def where(self, now_ns: int, marked_ns: int | None) -> Where:
        """By the samples; else by the probe's own look, if no mark has been made since."""
        frame, standing = self.main_frame(now_ns), self.dumps.standing(marked_ns)
        if frame is None and standing is not None:
            return Where(standing.frame, standing.way, "probe")
        return Where(frame, self.main_way(now_ns), "py-spy", self.workers_at(now_ns))

    def workers_at(self, now_ns: int) -> tuple[WorkersAt, ...]:
        """Where the loader's workers were last; () when nobody knows."""
        return workers_at(self._newest(now_ns))

    def main_frame(self, now_ns: int) -> str | None:
        """Where the main thread was last seen most: the innermost frame worth naming."""
        frames = self._main(now_ns)
        return worth_naming(frames) if frames else None

    def main_way(self, now_ns: int) -> tuple[str, ...]:
        """How it came there: a few frames, outermost first; () when nobody knows."""
        return way_to(self._main(now_ns))

    def _main(self, now_ns: int) -> tuple[str, ...]:
        main = [stack for stack in self._newest(now_ns) if stack.role == "main"]
        return max(main, key=lambda stack: stack.count).frames if main else ()

    def _newest(self, now_ns: int) -> tuple[StackCount, ...]:
        """Of the newest chunk, while it says where the threads are now."""
        if not self._chunks or now_ns - self._chunks[-1].t_ns > FRESH_NS:
            return ()
        return self._chunks[-1].stacks
