"""On stack samples: what uses nothing for so long hangs, or waits for work."""

from typing import Final

from ..findings import Evidence, Finding, find_missing
from ..format import ms
from ..place_names import path_of
from ..rules.stalled import (
    IDLE,
    notebook_idle,
    stopped,
    stuck_worker,
    stuck_worker_advice,
    workers_evidence,
)
from ..scoring import state
from ..stack_samples import Still
from ..thresholds import samples as limits
from ..window import SampleWindow


def stalled(window: SampleWindow) -> Finding | None:
    """A long step uses cores or the GPU; a long wait for data is one in which workers do. What uses
    nothing for this long hangs."""
    if (by_kernel := stopped(window)) is not None:
        return by_kernel
    still = window.sampled.still
    if still is None or window.ended or not _nothing_runs(still):
        return None
    if find_missing(window.missing, "torch") is not None:
        return None  # nothing is expected to move
    idle = still.gpu_busy is None or still.gpu_busy < limits.STILL_GPU
    # What other ranks run nobody sees here: they are no children.
    ranks = _in_collective(still)
    if still.age_s < (limits.STILL_S if idle and not ranks else limits.STILL_BESIDE_GPU_S):
        return None
    if still.at_prompt:
        return notebook_idle(still.age_s, "py-spy")
    if _waits_for_work(still):
        return _idle(still)
    age = ms(still.age_s * 1e9)
    evidence = [
        Evidence(
            f"the main thread for {age}: {' → '.join(still.stack)}", "py-spy", still.age_s, "s"
        ),
        Evidence(
            "neither it nor its child processes use a core", "proc", still.beside_cores, "cores"
        ),
    ]
    workers = still.workers if still.phase == "data" else ()
    evidence += workers_evidence(workers)
    held = stuck_worker(workers)
    here = f", {held}" if held else f" in {still.frame}"
    doing = "waiting for data" if still.phase == "data" else still.phase
    doing = "waiting for other ranks" if ranks else doing
    advice = f"look at what the main thread waits for in {still.frame}"
    if ranks:
        advice = f"look at the other ranks: one of them does not come to {still.frame}"
    elif held:
        advice = stuck_worker_advice(held)
    headline = f"no progress for {age}: {doing}{here}"
    return state("stalled", None, "critical", headline, tuple(evidence), (advice,))


SERVER: Final = "socketserver.py"
"""Of Python's own servers, http.server among them: each waits for requests there."""


def _waits_for_work(still: Still) -> bool:
    """A server, or a program at work on something else, which no sample has shown to train; one
    that hangs in a loader, a net or a collective does."""
    serves = any(path_of(frame) == SERVER for frame in still.stack)
    beside = (
        still.phase in ("other", "waiting") and path_of(still.frame) not in limits.COLLECTIVE_FILES
    )
    return beside and (serves or not still.trains)


def _in_collective(still: Still) -> bool:
    return path_of(still.frame) in limits.COLLECTIVE_FILES


def _idle(still: Still) -> Finding:
    age = ms(still.age_s * 1e9)
    way = f"the main thread: {' → '.join(still.stack)}"
    headline = f"nothing runs for {age}: it waits in {still.frame}"
    headline += "" if still.trains else ", and no training was seen"
    evidence = (Evidence(way, "py-spy", still.age_s, "s"),)
    return state("healthy", IDLE, "info", headline, evidence)


def _nothing_runs(still: Still) -> bool:
    if still.thread_cpu is None or still.beside_cores is None:
        return False
    return still.thread_cpu < limits.STILL_THREAD and still.beside_cores < limits.STILL_CORES
