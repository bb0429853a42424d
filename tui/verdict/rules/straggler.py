"""Another rank of the job is late, and this one waits for it in every collective."""

from typing import Final

from ..findings import Evidence, Finding
from ..format import ms, percent
from ..gpu_clock import counted_by
from ..scoring import cause
from ..statistics import without_rows
from ..thresholds.gpu import GPU_BUSY, SPINS
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

_IN: Final = {"data": "waits for data", "other": "is in Python between the phases"}


def straggler(window: StepWindow) -> Finding | None:
    """What the late rank loses against the others in a phase of its own is what all others wait:
    gradients are exchanged when the last one has them. Says nothing on the late rank itself, whose
    own causes are the verdict, and nothing unless this rank is like the others."""
    late = window.late_rank
    if late is None or late.is_target or late.step_ms <= 0:
        return None
    lost_ms = late.ms - late.others_ms
    share = min(1.0, lost_ms / late.step_ms)
    if share < CONTRIBUTOR:
        return None
    does = _IN.get(late.phase, f"is in its {late.phase}")
    here, there = ms(late.others_ms * 1e6), ms(late.ms * 1e6)
    evidence = [
        Evidence(
            f"rank {late.rank} {does} {there} per step, the others {here}", "hook", lost_ms, "ms"
        )
    ]
    activity = window.activity
    if activity is not None and activity.busy is not None and activity.tensor is not None:
        units = max(activity.tensor, activity.fp32 or 0.0, activity.dram or 0.0)
        if activity.busy >= 100 * GPU_BUSY and units < 100 * SPINS:
            text = f"the GPU here is busy {activity.busy:.0f}% of the time with all units idle: "
            text += "it waits in a collective"
            evidence.append(Evidence(text, counted_by(activity), activity.busy, "%"))
    return cause(
        "straggler",
        None,
        without_rows(share),
        f"all ranks wait for rank {late.rank} {percent(share)} of each step",
        tuple(evidence),
        (f"the cause is on rank {late.rank}: gpuwatch attach {late.pid}",),
    )
