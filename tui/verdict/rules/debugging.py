"""What is meant for finding an error and was left on: it takes time of every operation."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ..code_places import main_places, share_seen, share_where
from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import percent
from ..place_names import file_of, own_frame
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

ANOMALY_OFF: Final = (
    "torch.autograd.set_detect_anomaly(False): it records a stack and checks for "
    "NaN at every operation"
)
PROFILER_OFF: Final = (
    "no profiler around the training: torch.profiler.profile in a few steps only, with "
    "schedule(wait=…, warmup=…, active=…, repeat=1)"
)
_STACKS: Final = ("traceback.py", "linecache.py")
"""Python's own files, in which `torch.fx.traceback.format_stack` makes a stack's text."""
_PROFILER: Final = "(torch/profiler/"
_ANNOTATIONS: Final = "_cupti_monitor.py"
"""Of its files the one that `record_function` calls each time since torch 2.13: 2 % of the samples
of loops of 2 ms, where nothing records."""
_RECORDER: Final = re.compile(
    r"(profile\.\w+|export_\w+|_(prepare|start)_trace|_parse_kineto_results) "
    r"\(torch/autograd/profiler"
)
"""Where a profiler begins, and ends by making objects and files of what it recorded. Not
`record_function` in the same file, which loaders and optimizers call in every step."""


def records_stacks(place: FrameShare) -> bool:
    """The text of a stack is made there."""
    return file_of(place.frame) in _STACKS


def profiles(place: FrameShare) -> bool:
    """A profiler of the program's own is begun, ended or written there."""
    if file_of(place.frame) == _ANNOTATIONS:
        return False
    return _PROFILER in place.frame or _RECORDER.match(place.frame) is not None


def debugging(window: StepWindow) -> Finding | None:
    """Autograd's anomaly detection, or a profiler, as far as samples show it. Both cost more than
    that: in C, in each operation and in the backward, which no sample can tell from the work
    itself. So the gain is the least."""
    settings = window.settings
    if settings is None or window.gpu_present:
        return None
    if settings.anomaly:
        headline = "anomaly detection, left on, records stacks {} of the time"
        found = _seen(window, records_stacks, headline, ANOMALY_OFF)
        if found is not None:
            return found
    headline = "a profiler of the program's own takes {} of the time"
    return _seen(window, profiles, headline, PROFILER_OFF)


def _seen(
    window: StepWindow, which: Callable[[FrameShare], bool], headline: str, advice: str
) -> Finding | None:
    share, stacks = share_seen(window, which), window.stacks
    if stacks is None or share.low < CONTRIBUTOR:
        return None
    places = [place for place in main_places(window) if which(place)]
    seen = round(share_where(places, which) * stacks.main_samples)
    most = max(places, key=lambda place: place.share)
    text = (
        f"{seen:,} of {stacks.main_samples:,} main-thread samples ({percent(share.mean)}) are in "
    )
    text += ", ".join(sorted({file_of(place.frame) for place in places}))
    where = own_frame(most)
    text += f", called from {where}" if where else ""
    found = cause(
        "host",
        None,
        share,
        headline.format(percent(share.mean)),
        (Evidence(text, "py-spy", share.mean),),
        (advice,),
    )
    return replace(found, forecast=at_least(speedup_of(share.low)))
