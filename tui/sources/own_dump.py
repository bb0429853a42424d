"""What the probe itself saw of its process's threads, in the words of the other stacks."""

from typing import Final

from probe.wire.dump import Dump, ThreadStack
from tui.observations import DumpSeen, StackCount
from tui.sources.short_paths import ShortPaths
from tui.sources.source_lines import SourceLines, roots_of
from tui.sources.stack_samples import PIN_LOOP, frame_text

CUT: Final = "… more frames"
"""In place of the outermost ones, where there were too many to tell."""


class DumpReader:
    """Looks at the files of one process."""

    def __init__(self, pid: int) -> None:
        """`pid` as it is here."""
        self._pid = pid
        self._paths = ShortPaths(pid)
        self._lines = SourceLines(roots_of(pid))

    def read(self, dump: Dump, now_ns: int) -> DumpSeen:
        """One dump."""
        stacks = tuple(self._stack(thread) for thread in dump.threads)
        return DumpSeen(t_ns=now_ns, taken_ns=dump.taken_ns, stacks=stacks, left_out=dump.left_out)

    def _stack(self, thread: ThreadStack) -> StackCount:
        frames = tuple(frame_text(frame, self._paths.of) for frame in thread.frames)
        pins = any(frame.startswith(PIN_LOOP) for frame in frames)
        return StackCount(
            role="main" if thread.training else "pin" if pins else "other",
            pid=self._pid,
            thread=thread.name,
            frames=(CUT, *frames) if thread.cut else frames,
            count=1,
            line=self._lines.of(frames),
        )
