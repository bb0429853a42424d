"""What a setting costs in this run, as notes word it."""

from collections.abc import Callable, Iterable

from ..code_places import main_places, share_where
from ..findings import EvidenceSource
from ..format import percent
from ..gpu_clock import on_device
from ..step_time import wall_of
from ..thresholds.causes import NOTE_SHARE
from ..window import FrameShare, StepWindow


def phase_share(window: StepWindow, phase: str) -> tuple[float, EvidenceSource]:
    """Part of the steps' time that a phase takes, 0 to 1, and by whose clock."""
    device = on_device(window)
    if device is not None:
        whole = sum(row.wall_ns for row in device.rows)
        part = sum(getattr(row, f"{phase}_ns") for row in device.rows)
        return part / max(1, whole), "event"
    whole = sum(map(wall_of, window.steps))
    return sum(getattr(row, f"{phase}_ns") for row in window.steps) / max(1, whole), "hook"


def sampled(window: StepWindow, which: Callable[[FrameShare], bool]) -> float:
    """Part of the training thread's samples in such places; 0 where that is too little."""
    share = share_where(main_places(window), which)
    return share if share >= NOTE_SHARE else 0.0


def in_samples(share: float) -> str:
    """ "4% of main-thread samples"."""
    return f"{percent(share)} of main-thread samples"


def first_at(places: Iterable[FrameShare], which: Callable[[FrameShare], bool]) -> str:
    """ " (train.py:31)", where the first such place is; "" where no line is named."""
    found = next((place for place in places if which(place)), None)
    frame = (found.caller or found.frame) if found is not None else ""
    _, bracket, position = frame.rpartition("(")
    return f" ({position}" if bracket else ""
