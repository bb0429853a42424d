"""A signal is missing that the verdict would rest on: name it rather than guess."""

from ..code_places import main_places, place_evidence
from ..findings import Evidence, Finding
from ..format import percent
from ..gpu_clock import idle_of, on_device
from ..scoring import state
from ..statistics import share_of
from ..step_time import wall_of
from ..thresholds.gpu import GPU_BUSY
from ..thresholds.hysteresis import ATTRIBUTED, ENTER_LOW, ENTER_SHARE
from ..window import StepWindow


def unattributed(window: StepWindow) -> Finding | None:
    """Time in no phase."""
    unknown = 1 - window.attributed
    if window.attributed >= ATTRIBUTED:
        return None
    text = f"{percent(unknown)} of the time is in no phase"
    advice = 'name what the loop does: with probe.phase("…")'
    evidence = (Evidence(text, "hook", unknown),)
    return state("incomplete", "unattributed", "info", text, evidence, (advice,))


def incomplete(window: StepWindow) -> Finding | None:
    """A loop whose fetches are not seen, or a GPU that Python may wait for."""
    frames = tuple(place_evidence(place, "main-thread") for place in main_places(window)[:2])
    if not window.sees_loading:
        return state(
            "incomplete",
            "loader",
            "info",
            "no loader seen: data wait cannot be separated from the forward pass",
            frames,
            ("wrap what the loop iterates over: for batch in probe.wrap(batches)",),
        )
    rows = window.steps
    other = share_of([row.other_ns for row in rows], [wall_of(row) for row in rows])
    blind = window.gpu_present and on_device(window) is None and not main_places(window)
    if blind and other.low > ENTER_LOW and other.mean > ENTER_SHARE:
        return state(
            "incomplete",
            "stacks",
            "info",
            f"{percent(other.mean)} of each step is between the phases: Python, or a wait "
            "for the GPU",
            (Evidence("stack samples would tell which", "hook", other.mean),),
            ("enable py-spy: see `gpuwatch doctor`",),
        )
    idle = idle_of(window)
    if idle >= 1 - GPU_BUSY and on_device(window) is not None and not main_places(window):
        return state(
            "incomplete",
            "stacks",
            "info",
            f"GPU idle {percent(idle)} of the time; what the host does then is unknown",
            (Evidence("stack samples would show it", "gpm", idle),),
            ("enable py-spy: see `gpuwatch doctor`",),
        )
    return None
