"""The GPU waits while batches are copied to it."""

from collections.abc import Sequence

from ...settings import HostCopies
from ..code_places import COPY_CALL, copies_to_gpu, main_places, share_held, share_seen
from ..exposed_wait import exposed_wait
from ..findings import Evidence, Finding
from ..forecast.gain import gain_on_device, gain_without
from ..format import percent, times
from ..gpu_clock import Copies, copies, made_on_host
from ..host_tensors import FILLED, copied_at_once, filled_then_copied
from ..idle_ledger import computed_for_gpu
from ..loader import loader_floor
from ..on_device import idle_of
from ..place_names import call_at, place_evidence
from ..scoring import cause
from ..stack_samples import FrameShare
from ..statistics import Share, added, at_most, beyond, without_rows
from ..thresholds.causes import TINY_COPIES
from ..thresholds.gpu import LOOP_SHARE
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, traced_forward
from ..window import StepWindow


def h2d(window: StepWindow) -> Finding | None:
    """Copies on the compute stream are always exposed, pinned ones too; what runs
    while the GPU computes is not counted."""
    moved = copies(window)
    if moved is None:
        return None
    share = without_rows(moved.share)
    places = main_places(window)
    filled, with_them = filled_then_copied(places)
    if moved.by_samples:
        share = _by_samples(window, moved, filled)
    # Idle time that is the wait for data is no copy's.
    share = at_most(share, max(0.0, idle_of(window) - exposed_wait(window)))
    made = made_on_host(window)
    if made is not None:
        # They are computed there as well, which goes with the copies.
        share = added(share, computed_for_gpu(window))
    if share.mean < CONTRIBUTOR or (moved.by_samples and share.low < CONTRIBUTOR):
        return None
    copied = [place for place in places if copies_to_gpu(place)]
    sub, advice = _advice(moved, f" for {call_at(copied[0], COPY_CALL)}" if copied else "")
    where = _filled_on_host(copied, filled, with_them)
    if made is not None:
        where = _places(window, made)
    lines = tuple(place_evidence(place, "main-thread") for place in copied)[:1]
    headline, evidence = "copying batches to the GPU takes", (*_evidence(moved), *lines)
    if where is not None:
        advice = (f"make it on the GPU, with device=...{where and f': {where}'}",)
        headline = "making tensors on the host and copying them to the GPU takes"
        evidence = lines  # the batches' size and rate are beside the point
    return cause(
        "h2d",
        sub,
        share,
        f"{headline} {percent(share.mean)} of each step",
        evidence,
        advice,
        loader_floor(window),
        gain_without("h2d", window) if made is None else gain_on_device(window, "h2d"),
    )


def _evidence(moved: Copies) -> tuple[Evidence, ...]:
    found = []
    if moved.rx_mb_s is not None:
        text = f"{moved.rx_mb_s / 1000:.1f} GB/s to the GPU over PCIe, "
        text += f"of about {_possible(moved)}"
        found.append(Evidence(text, "gpm", moved.rx_mb_s, "MB/s"))
    if moved.batch_bytes is not None:
        size = f"{moved.batch_bytes / 2**20:.1f} MiB"
        where = {True: ", in pinned memory", False: ", not in pinned memory", None: ""}
        text = f"a batch is {size} in {moved.tensors} tensors{where[moved.pinned]}"
        found.append(Evidence(text, "hook", moved.batch_bytes / 2**20, "MiB"))
    # Tiny copies never reach a rate: how many there are shows it.
    return tuple(reversed(found)) if moved.tiny else tuple(found)


def _possible(moved: Copies) -> str:
    """ "27 possible from pinned memory, 6 from pageable": what copies alone reach."""
    pinned, pageable = (round(rate / 1000) for rate in (moved.pinned_mb_s, moved.pageable_mb_s))
    if moved.pinned:
        return f"{pinned} possible"
    return f"{pinned} possible from pinned memory, {pageable} from pageable"


def _by_samples(window: StepWindow, moved: Copies, filled: Sequence[FrameShare]) -> Share:
    """What such lines take beyond what the GPU had queued is known no better than their samples."""
    seen = share_seen(window, lambda place: copies_to_gpu(place) or place in filled)
    return at_most(beyond(seen, max(0.0, seen.mean - moved.on_lines)), moved.share)


def _places(window: StepWindow, made: HostCopies) -> str:
    """Where most of them are copied, and the line that computes most of them, if that is another
    one."""
    seen, at = traced_forward(window), shown(made.made_at)
    computed = None if seen is None else seen.on_host
    beside = "" if computed is None else shown(computed.place)
    if not computed_for_gpu(window).mean:
        beside = ""
    return ", and ".join(dict.fromkeys(filter(None, (at, beside))))


def _filled_on_host(
    copied: Sequence[FrameShare], filled: Sequence[FrameShare], with_them: Sequence[FrameShare]
) -> str | None:
    """ "`torch.zeros(n, m).to(device)` at train.py:81", where such tensors are most of what is
    copied."""
    at_once = [place for place in copied if copied_at_once(place)]
    of_them = share_held({*filled, *with_them, *at_once})
    if not of_them or of_them < LOOP_SHARE * share_held((*filled, *copied)):
        return None
    return call_at(filled[0], FILLED) if filled else call_at(at_once[0], COPY_CALL)


def _advice(moved: Copies, where: str) -> tuple[str, tuple[str, ...]]:
    if moved.tiny:
        many = f"one copy instead of {moved.tensors}"
        if (moved.tensors or 0) < TINY_COPIES:
            many = f"one copy instead of many small ones{where}"
        return "tiny", (
            f"{many}: collate a batch into few tensors, or pack them",
            f"pin_memory=True, and non_blocking=True{where}",
        )
    smaller = "send less: uint8 or bf16, converted on the GPU"
    ahead = "copy the next batch on a side stream while this one is computed"
    if not moved.from_pageable:
        return "bandwidth", (smaller, ahead)
    faster = moved.pinned_mb_s / moved.pageable_mb_s
    pin = "DataLoader(..., pin_memory=True), and non_blocking=True"
    if moved.pinned:
        pin = ".pin_memory() on the host, which the loader's batches have, and non_blocking=True"
    return "pageable", (
        f"{pin}{where}: copies run up to {times(faster)} faster from pinned memory",
        smaller,
        ahead,
    )
