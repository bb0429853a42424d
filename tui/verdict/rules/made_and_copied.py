"""Tensors that Python makes on the host in each step of a training on a GPU, with their copies:
made on the GPU, neither is left."""

from dataclasses import replace

from ..code_places import copies_to_gpu, main_places, share_held
from ..findings import Evidence, Finding
from ..forecast.gain import Gain, gain_without_both
from ..forecast.interval import interval_of
from ..format import percent
from ..loader import loader_floor
from ..place_names import place_evidence, place_name, users_function
from ..scoring import MADE_AND_COPIED, cause
from ..stack_samples import FrameShare
from ..statistics import Share, added
from ..window import StepWindow
from .h2d import h2d


def made_and_copied(
    window: StepWindow, maker: FrameShare, seen: Share, share: Share
) -> Finding | None:
    """Where most lines that copy lie in the function that makes what is copied. Trials of EEGs that
    are cut and joined in NumPy for each step, on an H200: 26 % and 12 % of it, and 1.6 and 2.3x by
    making them there. `seen`: what samples show of that Python; `share`: what of it the GPU idles
    for."""
    copied = [one for one in main_places(window) if copies_to_gpu(one)]
    own = [one for one in copied if users_function(one) == users_function(maker)]
    if not (window.gpu_present and own) or share_held(own) <= share_held(copied) / 2:
        return None
    moved = h2d(window)
    if moved is None:
        return None
    copying = Share(moved.share or 0.0, moved.share_low or 0.0, moved.share_high or 0.0)
    both = added(share, copying)
    counted = moved.evidence[0].source if moved.evidence else "py-spy"
    gain = gain_without_both("host", "h2d", window)
    found = cause(
        "host",
        MADE_AND_COPIED,
        both,
        f"making tensors on the host takes {percent(both.mean)} of each step, with their copies",
        (
            place_evidence(maker, "main-thread"),
            Evidence(f"copying them takes {percent(copying.mean)}", counted, copying.mean),
        ),
        (
            f"make them on the GPU, in tensor expressions: {place_name(maker)}",
            "or in the loader's workers, from pinned memory",
        ),
        loader_floor(window),
        None if gain is None else Gain(gain, "estimate"),
    )
    if found.speedup is None:
        return found
    parts = added(seen, copying)
    known = interval_of("host", found.speedup, parts.mean, parts.low, parts.high)
    return replace(found, forecast=known)
