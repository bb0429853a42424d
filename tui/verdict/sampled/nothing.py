"""What is said before there is enough, and when no cause holds."""

from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.device import counted_by, idle_of
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.rules.busy_with import KINDS_OF_WORK, work_of
from tui.verdict.sampled.felt import knows_gpu, sampled_of
from tui.verdict.sampled.words import about
from tui.verdict.window import Window


def too_early(window: Window) -> Finding | None:
    """Until there are samples enough; or why there will be none."""
    have = sampled_of(window).samples
    if have >= policy.SAMPLED_LEAST:
        return None
    for source, why in (("torch", "no torch in it"), ("stacks", "its stacks are not sampled")):
        if (line := _missing(window, source)) is not None:
            return plain("incomplete", source, "info", f"no verdict: {why}", (_told(line),))
    if not have:
        return plain("warming-up", None, "info", "no sample of the training yet")
    return plain("warming-up", None, "info", f"{have} of {policy.SAMPLED_LEAST} samples")


def nothing(window: Window) -> Finding:
    """With a GPU, what its counters say it is busy with, or that it idles and nobody knows why."""
    compute = sum(sampled_of(window).share(one).mean for one in ("forward", "backward"))
    waits = sampled_of(window).share("data").mean
    seen = (
        Evidence(
            f"{percent(compute)} of the samples are in forward and backward", "py-spy", compute
        ),
        Evidence(f"{percent(waits)} wait for data", "py-spy", waits),
    )
    least = percent(policy.ENTER_SHARE)
    if not window.gpu_present:
        headline = f"nothing above {least} of the samples"
        if compute >= policy.MOST_OF_IT:
            headline += ": forward and backward are the limit"
        return plain("healthy", None, "info", headline, seen)
    activity = window.activity
    if activity is None or not knows_gpu(window):
        headline = "how busy the GPU is, is not known"
        return plain("incomplete", "gpu", "info", headline, seen)
    idle = idle_of(window)
    text = f"the GPU is busy {percent(1 - idle)} of the time"
    busy = Evidence(text, counted_by(activity), 1 - idle)
    if idle >= policy.IDLE_GPU:
        headline = f"the GPU idles {about(idle)} of the time while the host issues its work"
        advice = ("the probe's clock on the GPU would tell launches from other waits",)
        return plain("incomplete", "clock", "info", headline, (busy, *seen), advice)
    work = work_of(activity)
    found = next((one for kind in KINDS_OF_WORK if work and (one := kind(work))), None)
    if found is not None:
        return found
    return plain("compute", None, "info", "the GPU is the limit", (busy, *seen))


def _missing(window: Window, source: str) -> str | None:
    return next((line for line in window.missing if line.startswith(f"{source}:")), None)


def _told(line: str) -> Evidence:
    return Evidence(line.partition(": ")[2], "proc")
