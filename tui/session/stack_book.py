"""Stack samples of the last minute, and where the main thread was last."""

from collections import deque
from collections.abc import Collection
from typing import Final, NamedTuple

from tui.observations import StacksSeen
from tui.session.dump_book import DumpBook
from tui.session.open_step import FRAME_AGE_NS
from tui.session.workers_at import workers_at
from tui.sources.frames import way_to, worth_naming
from tui.verdict.window import SeenBy, WorkersAt

SPAN_NS: Final = 60_000_000_000
"""The window of the verdict; a chunk is a second or so."""
HELD_CHUNKS: Final = 240
"""Bounds the memory when chunks come faster than that: some hundred stacks each."""
FRESH_NS: Final = 25_000_000_000
"""An older sample does not say where the thread is now, unless nothing has moved since. Of a probed
run chunks of the main thread end 20 s apart at most (`tui.sources.stack_turns`)."""


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
        frame, standing = self.main_frame(now_ns, marked_ns), self.dumps.standing(marked_ns)
        if frame is None and standing is not None:
            return Where(standing.frame, standing.way, "probe")
        workers = self.workers_at(now_ns, marked_ns)
        return Where(frame, self.main_way(now_ns, marked_ns), "py-spy", workers)

    def workers_at(self, now_ns: int, since_ns: int | None = None) -> tuple[WorkersAt, ...]:
        """Where the loader's workers were when all of them were last looked at; () when nobody
        knows. `since_ns`: nothing has moved since."""
        for chunk in reversed(self._chunks):
            workers = any(stack.role == "worker" for stack in chunk.stacks)
            if workers and len(chunk.among) <= 1:
                return workers_at(chunk.stacks) if _holds(chunk, now_ns, since_ns) else ()
        return ()

    def main_frame(self, now_ns: int, since_ns: int | None = None) -> str | None:
        """Where the main thread was last seen most: the innermost frame worth naming."""
        frames = self._main(now_ns, since_ns)
        return worth_naming(frames) if frames else None

    def main_way(self, now_ns: int, since_ns: int | None = None) -> tuple[str, ...]:
        """How it came there: a few frames, outermost first; () when nobody knows."""
        return way_to(self._main(now_ns, since_ns))

    def _main(self, now_ns: int, since_ns: int | None) -> tuple[str, ...]:
        for chunk in reversed(self._chunks):
            main = [stack for stack in chunk.stacks if stack.role == "main"]
            if main:
                most = max(main, key=lambda stack: stack.count)
                return most.frames if _holds(chunk, now_ns, since_ns) else ()
        return ()


def _holds(chunk: StacksSeen, now_ns: int, since_ns: int | None) -> bool:
    """Whether it says where the threads are now: while they move, where they were lately; where
    nothing has moved for a while, where they have been since, for most of the chunk."""
    if since_ns is None or now_ns - since_ns < FRAME_AGE_NS:
        return now_ns - chunk.t_ns <= FRESH_NS
    return chunk.started_ns + chunk.t_ns > 2 * since_ns
