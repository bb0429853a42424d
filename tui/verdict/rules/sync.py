"""The host waits for the GPU, and then the GPU waits for the host."""

from collections.abc import Sequence
from typing import Final

from ..code_places import (
    SHAPE_CALL,
    SYNC_CALL,
    asks_for_shape,
    checks_arguments,
    main_places,
    reads_elements,
    share_seen,
    waits_for_gpu,
)
from ..findings import Evidence, Finding
from ..forecast.gain import gain_without, gain_without_waits
from ..format import percent, times
from ..gpu_clock import copied_from_pageable
from ..idle_ledger import idle_ledger
from ..loader import loader_floor, often_late
from ..on_device import counted_by, on_device
from ..place_names import call_at, line_of, place_evidence
from ..reading_functions import reads_results
from ..scoring import cause
from ..stack_samples import FrameShare
from ..statistics import Share
from ..thresholds.causes import TARGET_BUDGET, WAITS_ALIKE
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

ON_GPU: Final = (
    "work with it on the GPU, for the whole batch at once: torch.where, gather, or "
    "torch.repeat_interleave with its output_size"
)
"""What a net's forward can do instead of asking for a number."""
AT_ONCE: Final = (
    "it is read element by element: take it to the host at once (.tolist()) before the loop; or "
    "keep the result for all epochs, if it is always the same"
)
"""C-GCN on H200s: 3.4 to 3.9x by the one, 4.8x by the other."""
PINNED: Final = "pin_memory=True and .to(device, non_blocking=True)"
WITHOUT_CHECKS: Final = "torch.distributions.Distribution.set_default_validate_args(False)"
NO_WAIT: Final = (
    "leave it out: nothing needs it but a clock, and events of the GPU's time it without a wait "
    "(torch.cuda.Event(enable_timing=True))"
)
UNCHECKED: Final = f"leave out the checks of distributions' arguments ({WITHOUT_CHECKS})"


def sync(window: StepWindow) -> Finding | None:
    """Synchronisations that cost something: never the time in which the host waits, but what the
    GPU then idles.

    Without them the host would issue in the rest of its time, 1 - s, and the GPU would work for
    its busy time: R = 1 - max(busy, 1 - s). A GPU-bound loop with `loss.item()` has busy = 1 and
    loses nothing. Needs samples and a GPU utilisation counter.
    """
    known = window.activity
    places = main_places(window)
    if known is None or known.busy is None or not places or on_device(window) is None:
        return None
    waits = share_seen(window, reads_results(window))
    waiting = [place for place in places if waits_for_gpu(place)]
    busy = min(1.0, known.busy / 100)
    share = _exposed(window, waits, busy)
    if share.low < CONTRIBUTOR:
        return None
    mean = share.mean
    where = tuple(place_evidence(place, "main-thread") for place in waiting)
    evidence: tuple[Evidence, ...] = (
        Evidence(
            f"host blocked {percent(waits.mean)} of the time, GPU busy only {percent(busy)}",
            counted_by(known),
            busy,
        ),
        *where[:1],
    )
    if often_late(window):
        text = "batches are often late: the loader would be the limit next"
        evidence += (Evidence(text, "hook"),)
    return cause(
        "sync",
        None,
        share,
        f"host waits for the GPU leave it idle {percent(mean)} of each step",
        evidence,
        _advice(waiting, mean, _with_copies(window)),
        loader_floor(window),
        gain_without("sync", window),
    )


def _exposed(window: StepWindow, waits: Share, busy: float) -> Share:
    """What the ledger has for waits, and the exposed wait for batches that this thread makes
    itself: they would hide behind the GPU's work, had it not waited. Either fix gives that back."""
    ledger = idle_ledger(window)
    if ledger is None:
        return Share(0.0, 0.0, 0.0)
    most = ledger.shares["sync"]
    if window.loaders and window.loaders[0].num_workers == 0:
        most += ledger.shares["input"]
    return Share(
        *(
            min(most, max(0.0, 1 - max(busy, 1 - part)))
            for part in (waits.mean, waits.low, waits.high)
        )
    )


def _with_copies(window: StepWindow) -> str:
    """What belongs to seldom reads where batches are copied from pageable memory, and what both
    give: the copy waits for all that is queued, so that without the reads it is the next wait."""
    if not copied_from_pageable(window):
        return ""
    both = gain_without_waits(window)
    gives = "" if both is None else f"; both {times(both)} at the most"
    return f"; with {PINNED} too, for a copy from pageable memory waits next{gives}"


def _advice(waiting: Sequence[FrameShare], share: float, copies: str) -> tuple[str, ...]:
    """The line that waits most, one that waits about as long, and how seldom they would have to.
    What waits for less long, as the net or the batch's copy, waits longer once that line does not:
    without MONet's reads and checks, but with its copies, it was 1.02x as fast on an H200.
    """
    if not waiting:
        return ()
    # Not "every so many steps": the share does not tell in how many of them it is read now.
    seldom = (
        f"keep it on the GPU (.detach()) and read it {round(share / TARGET_BUDGET)} times as seldom"
    )
    place = waiting[0]
    if "synchronize(" in place.line:
        return (f"{_named([place])}: {NO_WAIT}",)
    if checks_arguments(place):
        rest = _advice([one for one in waiting if not checks_arguments(one)], share, copies)
        return (f"{UNCHECKED}: they ask the GPU each time", *rest)
    if asks_for_shape(place):
        keep = "keep the shape with torch.where(mask, a, b), or a multiplication by the mask"
        return (f"{call_at(place, SHAPE_CALL)}: {keep}", seldom)
    if reads_elements(place):
        return (f"{_named([one for one in waiting if reads_elements(one)])}: {AT_ONCE}", ON_GPU)
    if place.in_net:
        # FastSpeech's lengths, a thousand a step, which its next line needs: 2.0x on an H200.
        return (f"{_named(waiting)}: {ON_GPU}", f"where nothing depends on it: {seldom}")
    inner = next((one for one in waiting if one.in_net), None)
    if inner is not None:
        seldom += f"; then {_next_wait(inner)}, where the host waits next"
    seldom += copies
    later = 'or read it a step later: .to("cpu", non_blocking=True), checked with an event'
    return (f"{_named(waiting)}: {seldom}", later)


def _next_wait(place: FrameShare) -> str:
    return UNCHECKED if checks_arguments(place) else call_at(place, SYNC_CALL)


def _named(waiting: Sequence[FrameShare]) -> str:
    """The lines that wait about as long as the longest, two at most, as they stand in the code: in
    the order of their shares they would take turns. Both lie in the net, or neither."""
    alike = [one for one in waiting if one.in_net == waiting[0].in_net]
    near = [one for one in alike[:2] if one.share >= WAITS_ALIKE * waiting[0].share]
    near.sort(key=line_of)
    return " and ".join(dict.fromkeys(call_at(one, SYNC_CALL) for one in near))
