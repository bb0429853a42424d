"""What host time costs, given how busy the GPU's counters show it, and how samples are worded."""

from ..findings import Evidence
from ..format import percent
from ..gpu_clock import counted_by, idle_of
from ..statistics import Share
from ..window import Sampled, SampleWindow


def knows_gpu(window: SampleWindow) -> bool:
    """Whether GPU utilisation is known."""
    return window.activity is not None and window.activity.busy is not None


def gpu_exposed(window: SampleWindow, share: Share) -> Share:
    """At most the part of the time in which the GPU had nothing to do: while it works, what the
    host does costs nothing. Without a GPU, or a counter, all of it."""
    if not window.gpu_present or not knows_gpu(window):
        return share
    idle = idle_of(window)
    return Share(*(min(idle, part) for part in (share.mean, share.low, share.high)))


def idles(window: SampleWindow) -> tuple[Evidence, ...]:
    """The counter's word, where there is one."""
    if not window.gpu_present or window.activity is None or not knows_gpu(window):
        return ()
    idle = idle_of(window)
    text = f"the GPU is idle {percent(idle)} of the time"
    return (Evidence(text, counted_by(window.activity), idle),)


# Shares of samples are estimates, and worded so.


def about(share: float) -> str:
    """ "~57%"."""
    return percent(share) if 0 < share < 0.005 else f"~{percent(share)}"


def counted(sampled: Sampled, share: Share, what: str) -> Evidence:
    """ "57% of 190 samples (50% to 64%) wait for data"."""
    text = f"{percent(share.mean)} of {sampled.samples} samples ({percent(share.low)} to "
    text += f"{percent(share.high)}) {what}"
    return Evidence(text, "py-spy", share.mean)
