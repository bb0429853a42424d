"""Loaders, copies, and processes of the program's own that may make its batches."""

import re
from typing import Final

from ..code_places import copies_to_gpu, forward_of_net
from ..findings import Note
from ..format import ms, percent, size
from ..loader import feeding
from ..on_device import on_device
from ..pauses import warm_recent
from ..rules.input_on_thread import tireless
from ..rules.padding import is_recurrent, lengths_of
from ..stack_samples import FrameShare
from ..step_time import spent, wall_of
from ..thresholds import causes as limits
from ..window import StepWindow
from .training import in_samples, on_lines, sampled

_WHOLE_CALL: Final = re.compile(r"\.(to|cuda)\((?P<given>[^()]*(\([^()]*\)[^()]*)*)\)")
_NO_COPY: Final = re.compile(r"non_blocking|\*|dtype|float|half|double|int|long|bool|memory_format")
"""Arguments of a call that does not block, may not, or changes a type rather than the device."""


def blocking_copies(window: StepWindow) -> Note | None:
    """The host waits in `.to(device)` until the batch is there. That idles the GPU only where it
    has caught up; that part is the verdict's."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or not loader.pinned:
        return None
    what = "batches are pinned, but the host waits for their copy"
    return on_lines(window, _blocks, what, "non_blocking=True")


def _blocks(place: FrameShare) -> bool:
    """Only calls that end on their line: what follows on the next may be `non_blocking`."""
    calls = [match["given"] for match in _WHOLE_CALL.finditer(place.line)]
    return bool(calls) and not any(_NO_COPY.search(given) for given in calls)


def inline_loading(window: StepWindow) -> Note | None:
    """The training thread makes every batch itself. Less than a hundredth of its time is less than
    a worker's batch costs on its way, and without a GPU to hide that, more may be; where a net uses
    all cores a worker would take one of them (0.6x and 0.8x for one on two cores, measured)."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or loader.num_workers != 0 or (window.cores or 1) < 2:
        return None
    fed, total = feeding(window), spent(window.steps)
    plan = fed.plan() if fed is not None else None
    share = total.data_ns / max(1, total.wall_ns)
    if fed is None or plan is None or fed.fills_cores or share < limits.NOTE_SHARE:
        return None
    if loader.batch_device not in (None, "cpu"):
        return None
    if fed.on_cpu and plan.batch_ns >= fed.batch_ns:
        return None
    cost = f"{ms(fed.wait_ns)} per batch, {percent(share)} of the time"
    device = on_device(window)
    if device is not None and device.exposed_share < limits.MOST_OF_IT:
        cost += ", hidden behind the GPU's work"
    text = f"num_workers 0 → {plan.workers}: the training thread loads every batch itself"
    return Note(text, cost, "hook")


LEAST_MIXED: Final = 0.2
"""Of a batch's positions, beyond its texts' ends."""


def own_producers(window: StepWindow) -> Note | None:
    """Processes that the program started, without a loader, and that never wait."""
    makers = tireless(window)
    if not makers:
        return None
    what, them, each = f"{len(makers)} processes that it started compute", "they make", " each"
    if len(makers) == 1:
        what, them, each = "a process that it started computes", "it makes", ""
    text = f"{what} all the time: if {them} its batches, the training waits for them, soon if not "
    cost = f"{sum(makers) / len(makers):.0f}% of a core{each}"
    return Note(f"{text}now; more processes, or cheaper batches", cost, "proc")


def pageable_batches(window: StepWindow) -> Note | None:
    """Worth a word where the copy takes a hundredth of a batch's time or more, at the rate that
    pageable memory reached on an H200; the cost is what was sampled here."""
    loader = window.loaders[0] if window.loaders else None
    settings, batch_ns = window.settings, spent(window.steps).batch_ns
    if loader is None or settings is None or batch_ns is None:
        return None
    if loader.pinned is not False or loader.batch_bytes is None:
        return None
    copy_ns = 1e3 * loader.batch_bytes / limits.PAGEABLE_MB_S
    if settings.parameter_device != "cuda" or copy_ns < limits.NOTE_SHARE * batch_ns:
        return None
    text = f"batches of {size(loader.batch_bytes)} are copied from pageable memory: pin_memory=True"
    share = sampled(window, copies_to_gpu)
    if not share:
        return Note(text, None, "hook")
    return Note(text, f"{in_samples(share)} are on lines that copy", "py-spy")


def pinned_short(window: StepWindow) -> Note | None:
    """What is pinned can not be swapped out: where little is left, a few batches are what the
    kernel kills a process for."""
    loader = window.loaders[0] if window.loaders else None
    limit, held = window.memory_limit_bytes, window.memory[-1].bytes if window.memory else None
    if loader is None or not loader.pinned or limit is None or held is None:
        return None
    left = limit - held
    if left >= limits.NOTE_MEMORY_LEFT * limit:
        return None
    return Note(
        "host memory is short and batches are pinned: a smaller prefetch_factor, or "
        "pin_memory=False",
        f"{size(max(0, left))} left",
        "proc",
    )


def restarted_workers(window: StepWindow) -> Note | None:
    """Epoch starts of the recent steps, but for the first of the run, which is unavoidable."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or not loader.restarts:
        return None
    rows = warm_recent(window)
    starts = [row.startup_ns for row in rows if row.startup_ns]
    share = sum(starts) / max(1, sum(map(wall_of, rows)))
    if loader.iterations < 2 or share < limits.NOTE_SHARE:
        return None
    each = ms(sum(starts) / len(starts))
    return Note(
        "each epoch restarts its workers: persistent_workers=True",
        f"{each} per epoch start, {percent(share)} of the time",
        "hook",
    )


def mixed_lengths(window: StepWindow) -> Note | None:
    """Texts that are packed, of which a recurrent layer computes no padding, and goes through
    positions to the longest all the same: batches by length gave a small LSTM 2.0x on two cores,
    which is not to be told from a large one that gains nothing."""
    found = lengths_of(window.padding)
    if found is None or not found.by_ids or not is_recurrent(window):
        return None
    if all(place.unpacked for place in forward_of_net(window)) or 1.0 - found.kept < LEAST_MIXED:
        return None
    text = "a recurrent layer goes on to the longest text of a batch: batches of texts of about one"
    text += " length, by a batch sampler, have fewer positions"
    return Note(text, f"{percent(1.0 - found.kept)} of them lie beyond a text's end", "hook")
