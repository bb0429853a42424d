"""Pinned memory while the machine is short of memory."""

from tui.verdict import policy
from tui.verdict.figures import mib
from tui.verdict.findings import Note
from tui.verdict.window import Window


def pinned_short(window: Window) -> Note | None:
    """What is pinned can not be swapped out: where little is left, a few batches are what the
    kernel kills a process for."""
    loader = window.loaders[0] if window.loaders else None
    limit, held = window.memory_limit_bytes, window.memory[-1].bytes if window.memory else None
    if loader is None or not loader.pinned or limit is None or held is None:
        return None
    left = limit - held
    if left >= policy.NOTE_MEMORY_LEFT * limit:
        return None
    return Note(
        "host memory is short and batches are pinned: a smaller prefetch_factor, or "
        "pin_memory=False",
        f"{mib(max(0, left))} are left",
        "proc",
    )
