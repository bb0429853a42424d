"""A signal is missing that the verdict would rest on: name it rather than guess."""

from typing import Final

from ..code_places import fetching_unseen, main_places
from ..findings import Evidence, Finding, find_missing
from ..format import percent
from ..idle_ledger import IDLE, Part, idle_ledger
from ..on_device import counted_by, idle_of, on_device
from ..place_names import place_evidence
from ..scoring import state
from ..statistics import share_of
from ..step_time import wall_of
from ..thresholds.gpu import GPU_BUSY
from ..thresholds.hysteresis import ATTRIBUTED, ENTER_LOW, ENTER_SHARE, LEAST_SURE, UNSEEN
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
    least = UNSEEN if window.gpu_present else LEAST_SURE
    if not (window.sees_loading or _is_busy(window) or fetching_unseen(window) < least):
        return state(
            "incomplete",
            "loader",
            "info",
            "no loader seen: data wait cannot be separated from the forward pass",
            frames,
            ('name what makes a batch: with probe.phase("data"), or probe.wrap(batches)',),
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
            (Evidence("stack samples would show which", "hook", other.mean),),
            _how_to_sample(window),
        )
    idle = idle_of(window)
    if idle >= 1 - GPU_BUSY and on_device(window) is not None and not main_places(window):
        return state(
            "incomplete",
            "stacks",
            "info",
            f"GPU idle {percent(idle)} of the time; what the host does then is unknown",
            (Evidence("stack samples would show it", "gpm", idle),),
            _how_to_sample(window),
        )
    return None


def _how_to_sample(window: StepWindow) -> tuple[str, ...]:
    """Nothing where the first samples are on their way."""
    absent = find_missing(window.missing, "stacks")
    return ("enable py-spy: see `gpuwatch doctor`",) if absent else ()


def _is_busy(window: StepWindow) -> bool:
    """By its counters the GPU is the limit, wherever the loader's wait may hide."""
    activity = window.activity
    if activity is None or activity.busy is None or on_device(window) is None:
        return False
    return activity.busy >= 100 * GPU_BUSY


NAMED: Final = 3
"""Parts of the idle time that the headline names."""
WORDS_OF: Final[dict[Part, str]] = {
    "input": "waits for data",
    "pauses": "pauses",
    "copies": "copies",
    "allocator": "the allocator",
    "sync": "waits for the GPU",
    "host": "Python",
    "launch": "launching",
    "unexplained": "unexplained",
}


def idle_gpu(window: StepWindow) -> Finding | None:
    """A GPU that idles for 15 % of the time is not the limit, though no single cause holds 10 %:
    what it idles for, the largest part first."""
    ledger, activity = idle_ledger(window), window.activity
    if ledger is None or activity is None or activity.busy is None:
        return None
    idle = 1 - ledger.busy
    if idle < 1 - GPU_BUSY:
        return None
    parts = sorted(IDLE, key=ledger.shares.__getitem__, reverse=True)
    named = [f"{WORDS_OF[one]} {percent(ledger.shares[one])}" for one in parts[:NAMED]]
    headline = f"the GPU is idle {percent(idle)} of the time"
    if ledger.unexplained >= ENTER_SHARE:
        headline += f", {percent(ledger.unexplained)} for no cause that shows"
    elif ledger.shares[parts[0]] < ENTER_SHARE:
        headline += f", and no single cause holds {percent(ENTER_SHARE)}: {', '.join(named)}"
    else:
        headline += f": {', '.join(named)}"  # it does not give that back, or not for sure
    evidence = (
        Evidence(f"the GPU is busy {percent(ledger.busy)} of the time", counted_by(activity)),
        *(place_evidence(place, "main-thread") for place in main_places(window)[:2]),
    )
    return state("incomplete", "idle", "info", headline, evidence)
