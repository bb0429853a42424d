"""Batches that go to a GPU from memory that is not pinned."""

from tui.verdict import policy
from tui.verdict.figures import mib
from tui.verdict.findings import Note
from tui.verdict.notes.costs import in_samples, sampled
from tui.verdict.places import copies_to_gpu
from tui.verdict.spent import spent
from tui.verdict.window import Window


def pageable_batches(window: Window) -> Note | None:
    """Worth a word where the copy takes a hundredth of a batch's time or more, at the rate that
    pageable memory reached on an H200; the cost is what was sampled here."""
    loader = window.loaders[0] if window.loaders else None
    settings, batch_ns = window.settings, spent(window.steps).batch_ns
    if loader is None or settings is None or batch_ns is None:
        return None
    if loader.pinned is not False or loader.batch_bytes is None:
        return None
    copy_ns = 1e3 * loader.batch_bytes / policy.PAGEABLE_MB_S
    if settings.parameter_device != "cuda" or copy_ns < policy.NOTE_SHARE * batch_ns:
        return None
    text = f"batches of {mib(loader.batch_bytes)} are copied from pageable memory: pin_memory=True"
    share = sampled(window, copies_to_gpu)
    if not share:
        return Note(text, None, "hook")
    return Note(text, f"{in_samples(share)} are on lines that copy", "py-spy")
