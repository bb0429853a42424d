"""With a GPU and host clocks only: nothing on the host holds the run back."""

from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.spent import wall_of
from tui.verdict.window import Window


def compute(window: Window) -> Finding | None:
    """The GPU is the limit, or launching to it: sub-cause unknown (diagnosis 2.5, 4).

    No sub: `saturated`, `precision` and `underfilled` need the GPU's own clock and counters.
    """
    if not window.gpu_present:
        return None
    rows = window.steps
    wall = max(1, sum(map(wall_of, rows)))
    part = min(1.0, sum(row.forward_ns + row.backward_ns + row.optimizer_ns for row in rows) / wall)
    text = f"{percent(part)} of the time is spent issuing forward, backward and optimizer"
    return plain(
        "compute",
        None,
        "info",
        f"nothing on the host above {percent(policy.ENTER_SHARE)}: the GPU is the limit, or "
        "launching to it",
        (Evidence(text, "hook", part),),
        (),
    )
