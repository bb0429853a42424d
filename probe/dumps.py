"""Where every thread is, seen from within: for when nothing moves and py-spy may not look.

Only then: shares from such a look are wrong by a factor of ten (a thread that computes in C gives
the lock up at few places), a thread that does not move is where it is. So a look is refused while
marks come, one serves every monitor for a while, and its size is bounded. It is taken on the
publisher's thread: 0.06 ms for 5 threads, 0.45 ms for 41. GPUWATCH_CONTROL=0 turns it off.
"""

import os
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType
from typing import Final, NamedTuple

from .peers import Peer
from .recorder import Recorder

QUIET_NS: Final = 5_000_000_000
"""No mark for so long: half of what the monitor takes for a stall at the least."""
AGAIN_NS: Final = 5_000_000_000
"""Between two looks, and between two answers to one monitor."""
MOST_THREADS: Final = 32
MOST_FRAMES: Final = 64
MOST_TEXT: Final = 200
"""Characters of a name; of a file's its end. A dump has 3.3 MB at the very most, frames up to 4."""
OFF: Final = "commands to the probe are turned off (GPUWATCH_CONTROL=0)"


class ThreadStack(NamedTuple):
    """The fields of `messages.ThreadStack`."""

    name: str
    training: bool
    frames: list[tuple[str, str, int]]
    cut: bool


class Dump(NamedTuple):
    """The fields of `messages.Dump`."""

    taken_ns: int
    threads: list[ThreadStack]
    left_out: int
    why_not: str = ""


Place = tuple[CodeType, int]


class Dumps:
    """The last look, and whether another may be taken. Called on the publisher's thread only."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._off = os.environ.get("GPUWATCH_CONTROL") == "0"
        self._last: Dump | None = None

    def for_peer(self, peer: Peer | None, now_ns: int) -> Dump | None:
        """What to answer; None to who does not watch or has just had an answer, and while steps
        progress."""
        if peer is None or (peer.dumped_ns is not None and now_ns - peer.dumped_ns < AGAIN_NS):
            return None
        if self._off:
            peer.dumped_ns = now_ns
            return Dump(now_ns, [], 0, OFF)
        marked_ns = self._recorder.newest()[0]
        if now_ns - marked_ns < QUIET_NS:
            return None
        peer.dumped_ns = now_ns
        last = self._last
        if last is None or last.taken_ns < marked_ns or now_ns - last.taken_ns >= AGAIN_NS:
            self._last = last = dump(self._recorder.owner, now_ns)
        return last


def dump(owner: int, now_ns: int) -> Dump:
    """Of all threads but this one; `owner` is the training thread, 0 where there is none."""
    training = owner or threading.main_thread().ident
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    idents = sorted(frames, key=lambda ident: (ident != training, ident))
    # What a frame holds must not live longer for us than it would have.
    places = {
        ident: list(islice(_places(frames.pop(ident)), MOST_FRAMES + 1))
        for ident in idents[:MOST_THREADS]
    }
    frames.clear()
    names = _names()
    threads = [
        ThreadStack(
            names.get(ident, f"thread {ident}")[:MOST_TEXT],
            ident == training,
            [_frame(place) for place in reversed(found[:MOST_FRAMES])],
            len(found) > MOST_FRAMES,
        )
        for ident, found in places.items()
    ]
    return Dump(now_ns, threads, len(idents) - len(threads))


def _places(frame: FrameType | None) -> Iterator[Place]:
    """From the innermost on."""
    while frame is not None:
        yield frame.f_code, frame.f_lineno or 0
        frame = frame.f_back


def _frame(place: Place) -> tuple[str, str, int]:
    code, line = place
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return name[:MOST_TEXT], code.co_filename[-MOST_TEXT:], line


def _names() -> dict[int, str]:
    """Not by `threading.enumerate`: it takes a lock, and that one may be what nothing moves for."""
    active: dict[int, threading.Thread] = getattr(threading, "_active", {})
    return {ident: thread.name for ident, thread in active.copy().items()}
