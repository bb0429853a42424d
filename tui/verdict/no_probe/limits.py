"""The verdict before there are enough samples, and when no cause holds."""

from typing import Final

from ..findings import Evidence, Finding, Signal, find_missing
from ..format import ms, percent
from ..gpu_clock import counted_by, idle_of
from ..rules.compute import KINDS_OF_WORK, work_of
from ..rules.stalled import notebook_idle, stuck_worker, stuck_worker_advice, workers_evidence
from ..scoring import state
from ..thresholds.causes import MOST_OF_IT
from ..thresholds.hysteresis import ENTER_SHARE
from ..thresholds.no_probe import (
    IDLE_GPU,
    SAMPLED_LEAST,
    STILL_BESIDE_GPU_S,
    STILL_CORES,
    STILL_GPU,
    STILL_S,
    STILL_THREAD,
)
from ..window import SampleWindow, Still
from .samples import about, knows_gpu

WITHOUT: Final[tuple[tuple[Signal, str], ...]] = (
    ("torch", "no torch in it"),
    ("stacks", "its stacks are not sampled"),
)
"""Signals without which there will be no verdict."""


def too_early(window: SampleWindow) -> Finding | None:
    """Until there are samples enough; or why there will be none."""
    have = window.sampled.samples
    if have >= SAMPLED_LEAST:
        return None
    for signal, why in WITHOUT:
        if (missing := find_missing(window.missing, signal)) is not None:
            evidence = (Evidence(missing.reason, "proc"),)
            return state("incomplete", signal, "info", f"no verdict: {why}", evidence)
    if not have:
        return state("warming-up", None, "info", "no sample of the training yet")
    return state("warming-up", None, "info", f"{have} of {SAMPLED_LEAST} samples")


def no_cause(window: SampleWindow) -> Finding:
    """With a GPU, what its counters show it busy with, or that it idles for an unknown reason."""
    compute = sum(window.sampled.share(one).mean for one in ("forward", "backward"))
    waits = window.sampled.share("data").mean
    seen = (
        Evidence(
            f"{percent(compute)} of the samples are in forward and backward", "py-spy", compute
        ),
        Evidence(f"{percent(waits)} wait for data", "py-spy", waits),
    )
    least = percent(ENTER_SHARE)
    if not window.gpu_present:
        headline = f"no cause above {least} of the samples"
        if compute >= MOST_OF_IT:
            headline += ": forward and backward are the limit"
        return state("healthy", None, "info", headline, seen)
    activity = window.activity
    if activity is None or not knows_gpu(window):
        headline = "GPU utilisation is unknown"
        return state("incomplete", "gpu", "info", headline, seen)
    idle = idle_of(window)
    text = f"the GPU is busy {percent(1 - idle)} of the time"
    busy = Evidence(text, counted_by(activity), 1 - idle)
    if idle >= IDLE_GPU:
        headline = f"GPU idle {about(idle)} of the time while the host launches work"
        advice = ("with the probe, GPU timing separates launches from other waits",)
        return state("incomplete", "clock", "info", headline, (busy, *seen), advice)
    work = work_of(activity)
    found = next((one for kind in KINDS_OF_WORK if work and (one := kind(work))), None)
    if found is not None:
        return found
    return state("compute", None, "info", "the GPU is the limit", (busy, *seen))


# The main thread's stack does not move, and nothing else does either.


def stalled(window: SampleWindow) -> Finding | None:
    """A long step uses cores or the GPU; a long wait for data is one in which workers do. What uses
    nothing for this long hangs."""
    still = window.sampled.still
    if still is None or window.ended or not _nothing_runs(still):
        return None
    idle = still.gpu_busy is None or still.gpu_busy < STILL_GPU
    if still.age_s < (STILL_S if idle else STILL_BESIDE_GPU_S):
        return None
    if still.at_prompt:
        return notebook_idle(still.age_s, "py-spy")
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
    advice = (
        stuck_worker_advice(held)
        if held
        else f"look at what the main thread waits for in {still.frame}"
    )
    headline = f"no progress for {age}: {doing}{here}"
    return state("stalled", None, "critical", headline, tuple(evidence), (advice,))


def _nothing_runs(still: Still) -> bool:
    if still.thread_cpu is None or still.beside_cores is None:
        return False
    return still.thread_cpu < STILL_THREAD and still.beside_cores < STILL_CORES
