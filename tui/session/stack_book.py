"""Stack samples of the last minute, and where the main thread was last."""

from collections import deque
from collections.abc import Collection
from typing import Final

from tui.observations import StacksSeen
from tui.sources.frames import way_to, worth_naming

SPAN_NS: Final = 60_000_000_000
"""The window of the verdict; a chunk is a second or so."""
HELD_CHUNKS: Final = 240
"""Bounds the memory when chunks come faster than that: some hundred stacks each."""
FRESH_NS: Final = 10_000_000_000
"""An older sample does not say where the thread is now."""


class StackBook:
    """Chunks in time order."""

    def __init__(self) -> None:
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

    def main_frame(self, now_ns: int) -> str | None:
        """Where the main thread was last seen most: the innermost frame worth naming."""
        frames = self._main(now_ns)
        return worth_naming(frames) if frames else None

    def main_way(self, now_ns: int) -> tuple[str, ...]:
        """How it came there: a few frames, outermost first; () when nobody knows."""
        return way_to(self._main(now_ns))

    def _main(self, now_ns: int) -> tuple[str, ...]:
        if not self._chunks or now_ns - self._chunks[-1].t_ns > FRESH_NS:
            return ()
        main = [s for s in self._chunks[-1].stacks if s.role == "main"]
        return max(main, key=lambda stack: stack.count).frames if main else ()
