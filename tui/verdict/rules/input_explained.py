"""What every explanation of an input-bound run shares."""

from collections.abc import Callable
from dataclasses import dataclass

from tui.verdict.bound import speedup_of
from tui.verdict.feeding import Feeding
from tui.verdict.figures import cores, times
from tui.verdict.findings import Evidence
from tui.verdict.places import file_of, spot, told
from tui.verdict.window import FrameShare, Window


@dataclass(frozen=True, slots=True)
class Explained:
    """Why the loader is late, what shows it, and what to do about it."""

    sub: str | None
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]
    foretold: bool = True
    """Its first action can take all of the wait away; else nobody can say what it gives."""


Explanation = Callable[[Window, Feeding], Explained | None]

_DECODERS = ("ImageFile.py", "Image.py", "JpegImagePlugin.py", "PngImagePlugin.py", "_image.py")


def cheaper(place: FrameShare | None) -> str:
    """What to do about the place that holds a batch's time."""
    if place is None:
        return "make a batch cheaper: store the data at the size and type they are used in"
    if file_of(place.frame) in _DECODERS or "decode" in place.frame:
        what = "decode less: store the images at the size they are used, or decode on the GPU"
    else:
        what = "make it cheaper (vectorised, or on the GPU for a whole batch), or do it once and "
        what += "store the result"
    return f"{what} ({spot(place)})"


def named(places: tuple[FrameShare, ...], whose: str) -> tuple[Evidence, ...]:
    """The place that holds most samples, as evidence."""
    return tuple(told(place, whose) for place in places[:1])


def gain(feeding: Feeding, batch_ns: float) -> str:
    """ "at best 1.5x": what a batch time would give for the training alone."""
    share = 1 - batch_ns / feeding.batch_ns if feeding.batch_ns else 0.0
    return f"at best {times(speedup_of(max(0.0, share)))}"


def limited_by(feeding: Feeding, wanted: int) -> str:
    """ "9 would hide it, you have 2 cores"; "" where the cores are enough."""
    if feeding.cores is None or wanted <= feeding.cores:
        return ""
    return f"; {wanted} workers would hide it, you have {cores(feeding.cores)}"
