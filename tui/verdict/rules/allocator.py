"""The allocator works in the loop: its cache is emptied, or it asks the device for memory; without
a GPU, the kernel."""

from dataclasses import replace
from typing import Final

from ..allocations import asked_of_device, empties_in_loop, warm_counts
from ..code_places import EMPTYING_CALL, empties_cache, main_places, share_seen
from ..findings import Evidence, Finding
from ..forecast.gain import gain_without
from ..format import percent, size
from ..idle_ledger import idle_ledger
from ..loader import loader_floor
from ..on_device import idle_of, on_device
from ..own_operations import own_operations
from ..place_names import call_at, place_evidence
from ..scoring import cause
from ..stack_samples import FrameShare
from ..statistics import Share, at_most, without_rows
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, source, traced
from ..window import StepWindow
from .attention_weights import attention_weights
from .distances import distances
from .needless_products import needless_products
from .page_faults import page_faults
from .traced_operations import traced_operations, unfused

OWN_OPERATIONS: Final = 0.15
"""Part of the time, surely, from which a function's own operations are named beside page faults."""
MOST: Final = 0.4
"""Of all large tensors' bytes, from which on the function that makes most of them is named."""
EXPANDABLE = "if memory is short: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def allocator(window: StepWindow) -> Finding | None:
    """Time on lines that empty the cache, as far as the GPU is idle then: each call waits for the
    GPU and gives back memory that the next step asks for again. And what else is idle while the
    device is asked for memory in every step, or allocations have to empty the cache: launching does
    not explain that."""
    if not window.gpu_present:
        # Who brings them is looked for where there are any.
        if page_faults(window) is None:
            return None
        found = page_faults(window, _of_needless_tensors(window))
        return None if found is None else _with_place(window, found)
    known, ledger = window.activity, idle_ledger(window)
    if known is None or known.busy is None or on_device(window) is None or ledger is None:
        return None
    emptied: list[FrameShare] = []
    share, in_loop = Share(0.0, 0.0, 0.0), empties_in_loop(window)
    if in_loop:
        emptied = [place for place in main_places(window) if empties_cache(place)]
        share = at_most(share_seen(window, empties_cache), idle_of(window))
    asking = max(0.0, ledger.shares["allocator"] - share.mean)
    if asking:
        more = without_rows(asking)
        share = Share(
            share.mean + asking, max(share.low, more.low), min(1.0, share.high + more.high)
        )
    if share.mean < CONTRIBUTOR or share.low < CONTRIBUTOR:
        return None
    headline = f"emptying the allocator's cache takes {percent(share.mean)} of each step"
    advice: tuple[str, ...] = (
        "pad batches to a few sizes: the allocator then reuses what it has",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: free pieces then join",
    )
    if in_loop:
        call = call_at(emptied[0], EMPTYING_CALL) if emptied else "`torch.cuda.empty_cache()`"
        advice = (f"take {call} out of the loop: PyTorch reuses its cached memory", EXPANDABLE)
    if not emptied:
        headline = f"the allocator asks the device for memory {percent(share.mean)} of the time"
    return cause(
        "allocator",
        None,
        share,
        headline,
        (
            *(place_evidence(place, "main-thread") for place in emptied[:1]),
            *_asked(window, in_loop),
        ),
        advice,
        loader_floor(window),
        gain_without("allocator", window) if in_loop else None,
    )


def _with_place(window: StepWindow, found: Finding) -> Finding:
    """With the function whose tensors these are, as a traced step has shown, or may be, as samples
    have."""
    seen = traced(window)
    memory = None if seen is None else seen.new_memory
    if memory is not None and memory.of_bytes and memory.bytes >= MOST * memory.of_bytes:
        where = shown(memory.place)
        text = f"{size(memory.bytes)} of {size(memory.of_bytes)} of large tensors in a traced step "
        text += f"are made for {where}"
        part = memory.bytes / memory.of_bytes
        return replace(
            found,
            headline=f"{found.headline}, most of it for {where}",
            evidence=(*found.evidence, Evidence(text, source(window), part)),
            advice=(*found.advice, f"or make fewer or smaller tensors in {where}"),
        )
    most = own_operations(window, OWN_OPERATIONS)
    if most is None:
        return found
    make_less = f"or make smaller tensors in {most.frame}, which computes that long by itself"
    return replace(
        found,
        evidence=(*found.evidence, place_evidence(most, "main-thread")),
        advice=(*found.advice, make_less),
    )


def _of_needless_tensors(window: StepWindow) -> float:
    """Part of the time that they take with the faults that they bring."""
    found = attention_weights(window), distances(window), needless_products(window)
    known = sum(one.share or 0.0 for one in found if one is not None)
    seen = *traced_operations(window), unfused(window)  # of the same tensors, where there are both
    return max(known, *(0.0 if one is None else one.share or 0.0 for one in seen))


def _asked(window: StepWindow, in_loop: bool) -> tuple[Evidence, ...]:
    """Calls that reached the device, a step."""
    counts = warm_counts(window)
    if counts is None or asked_of_device(window) is None:
        return ()
    found = []
    if counts.retries:
        text = f"{counts.retries:,} allocations in {counts.steps:,} steps had to empty the cache"
        found.append(Evidence(f"{text} first", "hook", float(counts.retries)))
    if counts.asked is not None:
        text = f"{counts.asked:.1f} segments are asked of the device a step"
        if in_loop and not counts.retries and counts.given_back:
            text += f", and {counts.given_back:.1f} given back: the cache is emptied"
        found.append(Evidence(text, "hook", counts.asked, "segments"))
    return tuple(found)
