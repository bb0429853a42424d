"""Workers that are started again for every epoch."""

from dataclasses import replace

from tui.verdict import policy
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Note
from tui.verdict.pauses import startup_parts, warm_recent
from tui.verdict.spent import wall_of
from tui.verdict.window import Window


def restarted_workers(window: Window) -> Note | None:
    """Epoch starts of the recent steps, but for the first of the run: nobody is spared that."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or not loader.num_workers or loader.persistent_workers:
        return None
    rows = warm_recent(window)
    starts = [part for part in startup_parts(replace(window, steps=rows)) if part > 0]
    share = sum(starts) / max(1, sum(map(wall_of, rows)))
    if loader.iterations < 2 or share < policy.NOTE_SHARE:
        return None
    each = ms(sum(starts) / len(starts))
    return Note(
        "each epoch starts its workers anew: persistent_workers=True",
        f"{each} at an epoch's start, {percent(share)} of the time",
        "hook",
    )
