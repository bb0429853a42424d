"""Memory that grows: on the device, in the training process, or in its workers."""

from math import isfinite

from ..findings import Evidence, Finding
from ..format import mib, percent
from ..memory.causes import cause_of
from ..memory.growth import Growth, onset
from ..memory.trends import Exhaustion, MemoryPlace, exhaustion, readings, time_left
from ..scoring import state
from ..thresholds.memory import EARLY_STEPS, MEMORY_STEPS, SPLIT_ALLOCS, SPLIT_AT_PEAK, SPLIT_SHARE
from ..window import MemoryUnit, Window

# GPU memory in pieces: blocks partly in use, so that the allocator asks the device again.


def fragmentation(window: Window) -> Finding | None:
    """A fifth of what is held lies free between tensors, and requests go to the device after the
    warm-up all the same: the pieces are too small for them. Where requests had to empty the cache,
    a tenth of what was ever held is enough: so much was free even when the most was in use."""
    warm = [one for one in readings(window) if one.step > window.warm_step]
    if not warm or warm[-1].inactive_split is None or not warm[-1].reserved:
        return None
    newest = warm[-1]
    recent = [one for one in warm if newest.step - one.step <= MEMORY_STEPS]
    if newest.step - recent[0].step < EARLY_STEPS:
        return None
    part = min((one.inactive_split or 0) / max(1, one.reserved) for one in recent[-2:])
    retries = newest.retries - recent[0].retries
    spare = 1 - newest.peak_allocated / max(1, newest.peak_reserved)
    if part < SPLIT_SHARE and not (retries and spare >= SPLIT_AT_PEAK):
        return None
    asked = _asked(recent[0].device_allocs, newest.device_allocs)
    steps = newest.step - recent[0].step
    if not retries and (asked is None or asked / steps < SPLIT_ALLOCS):
        return None
    pieces, held = newest.inactive_split or 0, newest.reserved
    where = "is free between tensors"
    if part < SPLIT_SHARE:
        part, held = spare, newest.peak_reserved
        pieces = newest.peak_reserved - newest.peak_allocated
        where = "was free at the fullest moment"
    text = f"{mib(pieces)} of {mib(held)} reserved {where}"
    evidence = [Evidence(text, "hook", 100 * part, "%")]
    if retries:
        text = f"{retries:,} allocations in {steps:,} steps had to empty the cache first"
        evidence.append(Evidence(f"{text}: each waits for the GPU", "hook", float(retries)))
    if asked:
        text = f"the device was asked for memory {asked:,} times in {steps:,} steps"
        evidence.append(Evidence(text, "hook", float(asked)))
    return state(
        "memory-growth",
        "fragmentation",
        "warning",
        f"{percent(part)} of reserved GPU memory is in pieces too small to use",
        tuple(evidence),
        (
            "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: free pieces then join",
            "pad batches to a few lengths: the allocator reuses what fits",
        ),
    )


def _asked(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


def memory_growth(place: MemoryPlace, grown: Growth, leak: bool, window: Window) -> Finding:
    """`growth` is provisional; `leak` is growth that went on, or that will fill the memory soon.
    Only then is the time until it is full given."""
    left = exhaustion(place, grown, window)
    urgent = left is not None and left.urgent(grown)
    cause = cause_of(place, grown, window)
    evidence = [_rise(place, grown, window)]
    if (leak or urgent) and left is not None:
        evidence.append(_until_full(place, left, window.memory_unit))
    if cause.evidence is not None:
        evidence.append(cause.evidence)
    soon = (leak or urgent) and left is not None and left.within_a_day
    headline = f"{place.kind} memory grows {mib(100 * grown.slope.middle)} per 100 "
    headline += window.memory_unit
    if soon and left is not None and left.within_an_hour:
        headline += f", full in {time_left(left)}"
    return state(
        "memory-growth",
        "leak" if leak or urgent else "growth",
        "critical" if soon else "warning",
        headline,
        tuple(evidence),
        cause.advice,
    )


def _rise(place: MemoryPlace, grown: Growth, window: Window) -> Evidence:
    first, last = grown.blocks.lows[0], grown.blocks.lows[-1]
    text = f"{place.whose}: {mib(first.bytes)} to {mib(last.bytes)} "
    text += f"over {last.step - first.step:,} {window.memory_unit}"
    began = onset(place.points, grown, window.moments)
    if began is not None:
        text += f", since about step {began.step:,}"
        if began.beside is not None:
            happened = {"epoch": "a new epoch", "workers": "new workers"}
            what = happened.get(began.beside.kind, began.beside.kind)
            text += f" ({what} at step {began.beside.step:,})"
    return Evidence(text, place.source, grown.blocks.rise_bytes / 1024 / 1024, "MiB")


def _until_full(place: MemoryPlace, left: Exhaustion, unit: MemoryUnit) -> Evidence:
    earliest, latest = left.earliest_steps, left.latest_steps
    steps = [f"{earliest:,.0f}"]
    if isfinite(latest):
        steps.append(f"{latest:,.0f}")
    text = f"memory is full in {_range(steps)} {unit} ({time_left(left)})"
    return Evidence(text, place.source, earliest, unit)


def _range(ends: list[str]) -> str:
    """ "200 to 240"; one figure where both ends read the same."""
    return " to ".join(dict.fromkeys(ends))
