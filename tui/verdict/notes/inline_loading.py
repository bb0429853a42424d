"""num_workers=0, while that costs little."""

from tui.verdict import policy
from tui.verdict.device import on_device
from tui.verdict.feeding import feeding
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Note
from tui.verdict.spent import spent
from tui.verdict.window import Window


def inline_loading(window: Window) -> Note | None:
    """The training thread makes every batch itself. Less than a hundredth of its time is less than
    a worker's batch costs on its way."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or loader.num_workers != 0 or (window.cores or 1) < 2:
        return None
    fed, total = feeding(window), spent(window.steps)
    plan = fed.plan() if fed is not None else None
    share = total.data_ns / max(1, total.wall_ns)
    if fed is None or plan is None or share < policy.NOTE_SHARE:
        return None
    if loader.batch_device not in (None, "cpu"):
        return None
    cost = f"{ms(fed.wait_ns)} a batch, {percent(share)} of the time"
    device = on_device(window)
    if device is not None and device.felt < policy.MOST_OF_IT:
        cost += ", hidden behind the GPU's work"
    text = f"num_workers 0 → {plan.workers}: the training thread makes every batch itself"
    return Note(text, cost, "hook")
