"""Another process holds what this run needs: the GPU's time, or the cores."""

from dataclasses import replace

from ..cpu_wait import core_wait_evidence, remedies, starved
from ..findings import Evidence, Finding
from ..format import percent, size
from ..gpu_activity import GpuActivity, Neighbour
from ..gpu_clock import on_device
from ..loader import loader_floor
from ..scoring import cause
from ..statistics import without_rows
from ..thresholds.gpu import CAUGHT_UP_STEPS
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import RunFacts, StepWindow


def contention(window: StepWindow) -> Finding | None:
    """With a GPU, its time; without one, the cores. A GPU's run that waits for a core is
    `launch`, where that makes the GPU wait too."""
    if window.gpu_present:
        return _of_the_gpu(window)
    return core_contention(window, loader_floor(window))


def _of_the_gpu(window: StepWindow) -> Finding | None:
    """Processes take turns on a GPU: while others hold it for x of the time, work that waits for
    it takes up to 1 / (1 - x) as long. Time in which it would stand idle for data, or keep up with
    the host anyway, is not lost. Abstains where NVML does not report x."""
    activity, device = window.activity, on_device(window)
    if activity is None or not activity.others_sm or device is None:
        return None
    if device.caught_up is not None and device.caught_up >= CAUGHT_UP_STEPS:
        return None
    wanted = max(0.0, 1 - device.exposed_ns / device.step_ns) if device.step_ns else 0.0
    share = without_rows(activity.others_sm / 100 * wanted)
    if share.mean < CONTRIBUTOR:
        return None
    who = _named(activity.neighbours[0]) if activity.neighbours else "another process"
    return cause(
        "contention",
        "gpu",
        share,
        f"other processes hold the GPU {percent(activity.others_sm / 100)} of the time",
        _holders(activity),
        (f"give this run a GPU of its own: another in CUDA_VISIBLE_DEVICES, or move {who}",),
        loader_floor(window),
    )


def _holders(activity: GpuActivity) -> tuple[Evidence, ...]:
    evidence = []
    for one in activity.neighbours[:3]:
        text = _named(one)
        if one.sm_percent is not None:
            text += f" uses {one.sm_percent:.0f}% of the GPU's time"
        if one.memory_bytes is not None:
            text += f", {size(one.memory_bytes)} of its memory"
        evidence.append(Evidence(text, "nvml", one.sm_percent, "%"))
    return tuple(evidence)


def _named(one: Neighbour) -> str:
    return f"{one.name} (pid {one.pid})" if one.name else f"pid {one.pid}"


def core_contention(window: RunFacts, floor: float = 0.0) -> Finding | None:
    """Without a GPU: the time in which the training thread waited for a core that others had. An
    estimate, since other threads that it waits for lose more. Abstains where the kernel does not
    report it."""
    lack = None if window.gpu_present else starved(window)
    if lack is None or lack.by_others is None or lack.by_others < CONTRIBUTOR:
        return None
    share = without_rows(lack.by_others)
    found = cause(
        "contention",
        "cores",
        share,
        f"training waits for a core {percent(share.mean)} of the time: other processes use them",
        core_wait_evidence(window, lack),
        remedies(window, lack),
        floor,
    )
    return replace(found, speedup_is="estimate")
