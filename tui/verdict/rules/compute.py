"""With a GPU: nothing on the host holds the run back, so the GPU does."""

from dataclasses import replace

from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.device import OnDevice, counted_by, idle_of, on_device
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.rules.busy_with import KINDS_OF_WORK, work_of
from tui.verdict.rules.compute_advice import for_this_run
from tui.verdict.spent import wall_of
from tui.verdict.window import GpuActivity, Window


def compute(window: Window) -> Finding | None:
    """The GPU is the limit; on the host's clock alone, it or launching to it.

    What it is busy with, the counters say; without them there is no sub.
    """
    if not window.gpu_present:
        return None
    device = on_device(window)
    work = work_of(window.activity, window.settings)
    if work is not None:
        for judge in KINDS_OF_WORK:
            if (found := judge(work)) is not None:
                told = (*found.evidence, *_lag(device))[: policy.MOST_EVIDENCE]
                return replace(found, evidence=told, advice=for_this_run(found, window))
    evidence = (*_lag(device), *_busy(window.activity))
    least = percent(policy.ENTER_SHARE)
    if device is None or device.caught_up is None or _starved(device, window.activity):
        headline = f"nothing on the host above {least}: the GPU is the limit, or launching to it"
        return plain("compute", None, "info", headline, (_issued(window), *evidence))
    headline = f"the GPU is the limit: nothing else holds {least} of a step"
    if idle_of(window) >= 1 - policy.GPU_BUSY:
        headline = f"the GPU is busy {percent(1 - idle_of(window))} of the time, and no single "
        headline += f"cause holds {least} of a step"
    return plain("compute", None, "info", headline, evidence)


def _starved(device: OnDevice, told: GpuActivity | None) -> bool:
    """The GPU keeps up with the host, and nobody tells whether it is busy."""
    unknown = told is None or told.busy is None
    return unknown and (device.caught_up or 0.0) >= policy.CAUGHT_UP_STEPS


def _issued(window: Window) -> Evidence:
    rows = window.steps
    wall = max(1, sum(map(wall_of, rows)))
    part = min(1.0, sum(row.forward_ns + row.backward_ns + row.optimizer_ns for row in rows) / wall)
    text = f"{percent(part)} of the time is spent issuing forward, backward and optimizer"
    return Evidence(text, "hook", part)


def _lag(device: OnDevice | None) -> tuple[Evidence, ...]:
    if device is None or device.lag_ns is None or device.abstains:
        return ()
    text = f"the GPU runs {ms(device.lag_ns)} behind the host at the end of a step"
    found = [Evidence(text, "event", device.lag_ns / 1e6, "ms")]
    if device.hidden_ns >= policy.HIDDEN_WORTH * device.step_ns:
        text = f"{ms(device.hidden_ns)} a step of waiting for data are hidden behind its work"
        found.append(Evidence(text, "event", device.hidden_ns / 1e6, "ms"))
    return tuple(found)


def _busy(told: GpuActivity | None) -> tuple[Evidence, ...]:
    if told is None or told.busy is None:
        return ()
    source = counted_by(told)
    found = [Evidence(f"it is busy {told.busy:.0f}% of the time", source, told.busy, "%")]
    if told.tensor is not None:
        text = f"its tensor cores {told.tensor:.0f}%"
        if told.dram is not None:
            text += f", its memory {told.dram:.0f}%"
        found.append(Evidence(text, source, told.tensor, "%"))
    return tuple(found)
