"""A signal is missing that the verdict would rest on: say which, rather than guess."""

from .. import thresholds
from ..code_places import main_places, told
from ..findings import Evidence, Finding
from ..format import percent
from ..gpu_clock import idle_of, on_device
from ..scoring import plain
from ..statistics import share_of
from ..step_time import spent, wall_of
from ..window import Window


def incomplete(window: Window) -> Finding | None:
    """Time nobody claims, a loop whose fetches nobody sees, or a GPU that Python may wait for."""
    total = spent(window.steps)
    if total.attributed < thresholds.ATTRIBUTED:
        text = f"{percent(1 - total.attributed)} of the time belongs to no phase"
        return plain(
            "incomplete",
            "unattributed",
            "info",
            text,
            (Evidence(text, "hook", 1 - total.attributed),),
            ('name what the loop does: with probe.phase("…")',),
        )
    frames = tuple(told(place, "main-thread") for place in main_places(window)[:2])
    if not total.fetches:
        return plain(
            "incomplete",
            "loader",
            "info",
            "no loader seen: waiting for data cannot be told from the forward pass",
            frames,
            ("wrap what the loop iterates over: for batch in probe.wrap(batches)",),
        )
    rows = window.steps
    other = share_of([row.other_ns for row in rows], [wall_of(row) for row in rows])
    blind = window.gpu_present and on_device(window) is None and not main_places(window)
    if blind and other.low > thresholds.ENTER_LOW and other.mean > thresholds.ENTER_SHARE:
        return plain(
            "incomplete",
            "stacks",
            "info",
            f"{percent(other.mean)} of every step lies between the phases: Python, or a wait "
            "for the GPU",
            (Evidence("stacks would tell them apart", "hook", other.mean),),
            ("let py-spy look: see `gpuwatch doctor`",),
        )
    idle = idle_of(window)
    if (
        idle >= 1 - thresholds.GPU_BUSY
        and on_device(window) is not None
        and not main_places(window)
    ):
        return plain(
            "incomplete",
            "stacks",
            "info",
            f"the GPU idles {percent(idle)} of the time, and what the host does then is not known",
            (Evidence("stacks would tell", "gpm", idle),),
            ("let py-spy look: see `gpuwatch doctor`",),
        )
    return None
