"""An optimizer that was told to update its tensors one by one."""

from tui.verdict import policy
from tui.verdict.figures import percent
from tui.verdict.findings import Note
from tui.verdict.notes.costs import phase_share
from tui.verdict.window import Window


def one_by_one(window: Window) -> Note | None:
    """On a GPU each tensor costs a dozen launches where all together would. PyTorch groups them by
    itself, so somebody said `foreach=False`."""
    settings = window.settings
    if settings is None or settings.foreach is not False or settings.fused:
        return None
    many = (settings.parameters or 0) >= policy.NOTE_TENSORS
    if not many or settings.parameter_device != "cuda":
        return None
    share, source = phase_share(window, "optimizer")
    name = settings.optimizer or "the optimizer"
    text = f"{name}(foreach=False) updates {settings.parameters} tensors one by one: leave it out"
    return Note(text, f"the optimizer takes {percent(share)} of every step", source)
