"""The GPU waits for the host to launch its kernels."""

import re
from dataclasses import replace
from typing import Final

from ....probe.wire.messages import GpuStep
from ..code_places import (
    BETWEEN,
    by_user_function,
    empties_cache,
    function_of,
    is_users,
    main_places,
    own_frame,
    share_where,
    waits_for_gpu,
    within,
)
from ..cpu_wait import asleep, core_wait_evidence, remedies, starved
from ..findings import Evidence, Finding
from ..forecast.gain import gain_without
from ..forecast.interval import at_least
from ..format import ms, percent
from ..gpu_clock import copies, counted_by, on_device, unmeasured
from ..loader import loader_floor
from ..memory.trends import larger_batch
from ..scoring import cause
from ..statistics import Share, share_of, without_rows
from ..thresholds import causes as limits
from ..thresholds.gpu import CAUGHT_UP_STEPS, LAUNCH_BUSY, LOOP_SHARE
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE
from ..window import FrameShare, StepWindow
from .optimizer import updated_together


def cpu_starved(window: StepWindow, bubble: Share) -> Finding | None:
    """Where waiting for a core explains half of the `bubble` in which the GPU waits for launches:
    then cores are the cure, not fewer kernels."""
    lack = starved(window)
    if lack is None:
        return None
    part = min(lack.share, bubble.mean)
    if part < max(ENTER_SHARE, limits.STARVED_EXPLAINS * bubble.mean):
        return None
    idle = f"the GPU waits for the next kernel {percent(bubble.mean)} of each step"
    return cause(
        "launch",
        "cpu-starved",
        without_rows(part),
        f"the thread that launches kernels waits for a core {percent(lack.share)} of the time",
        (*core_wait_evidence(window, lack), Evidence(idle, "event", bubble.mean)),
        remedies(window, lack),
        loader_floor(window),
    )


CELL: Final = re.compile(r"(LSTM|GRU|RNN)Cell\.")
DETECTS_ANOMALIES: Final = (
    "torch.autograd.set_detect_anomaly(False): it records a stack and checks for "
    "NaN at every operation"
)


def launch(window: StepWindow) -> Finding | None:
    """The GPU has caught up with the host at the end of every phase, and is busy for part of them.
    What is not busy is the bubble; without a utilisation counter the rule abstains.
    Removing it is bounded by the GPU's busy time and by the loader.
    """
    device, activity = on_device(window), window.activity
    if device is None or device.caught_up is None or activity is None or activity.busy is None:
        return None
    if device.caught_up < CAUGHT_UP_STEPS or activity.busy >= 100 * LAUNCH_BUSY:
        return None
    rows = device.rows
    issued = share_of([_issued(row) for row in rows], [row.wall_ns for row in rows])
    busy = activity.busy / 100
    if share_where(main_places(window), waits_for_gpu) >= limits.SYNC_EXPLAINS:
        return None  # the idle gaps follow the waits
    moved = copies(window)
    taken = busy + share_where(main_places(window), empties_cache)
    taken += moved.share if moved is not None else 0.0
    like_these = unmeasured(window).left
    share = Share(
        *(max(0.0, like_these * part - taken) for part in (issued.mean, issued.low, issued.high))
    )
    if share.mean < CONTRIBUTOR:
        return None
    if (asleep(window) or 0.0) >= limits.ASLEEP_AWAKE * share.mean:
        return None  # a thread that launches runs all the time
    if (found := cpu_starved(window, share)) is not None:
        return found
    evidence = [
        Evidence(
            f"the GPU caught up with the host in {percent(device.caught_up)} of steps "
            "by the end of forward, backward and optimizer",
            "event",
            device.caught_up,
        ),
        Evidence(_busy(activity.busy, activity.sm), counted_by(activity), activity.busy, "%"),
        Evidence(
            f"launching takes {ms(issued.mean * device.step_ns)} of {ms(device.step_ns)} per step",
            "event",
            issued.mean * device.step_ns / 1e6,
            "ms",
        ),
    ]
    advice = [
        'fewer, larger kernels: torch.compile(model, mode="reduce-overhead"), or a CUDA graph of '
        "the step",
        larger_batch(window, "as many launches, with more work in each"),
    ]
    together = updated_together(window)
    issues_ns = sum(row.optimizer_ns for row in rows)
    if together and issues_ns >= limits.MOST_OF_IT * sum(map(_issued, rows)):
        advice.insert(0, f"most launches are the optimizer's: {together}")
    if window.settings is not None and window.settings.anomaly:
        advice.insert(0, DETECTS_ANOMALIES)
    advice += _loops(window)
    cells = _cells(window)
    if cells is not None:
        advice.insert(0, cells)
    found = cause(
        "launch",
        None,
        share,
        f"the GPU waits for the next kernel {percent(share.mean)} of each step",
        tuple(evidence),
        tuple(advice),
        loader_floor(window),
        gain_without("launch", window),
    )
    if found.speedup is None or advice[0] not in (cells, DETECTS_ANOMALIES):
        return found
    return replace(found, forecast=at_least(max(1.0, limits.LOOP_GIVES * found.speedup)))


def _cells(window: StepWindow) -> str | None:
    """A loop over a recurrent cell, of which cuDNN runs all time steps at once: most of the samples
    outside the backward are in one."""
    places = within(main_places(window), BETWEEN)
    looped = [place for place in places if CELL.match(place.frame)]
    if not looped or share_where(looped, _any) < LOOP_SHARE * share_where(places, _any):
        return None
    cell = looped[0].frame.partition("Cell")[0]
    where = own_frame(looped[0]) or looped[0].frame
    return f"nn.{cell} instead of {cell}Cell in a loop ({where}): all time steps in one call"


def _loops(window: StepWindow) -> list[str]:
    """A function of the user's own that is no module's forward and holds most of the launches."""
    places = within(main_places(window), BETWEEN)
    mine = by_user_function(filter(is_users, places))
    whole = share_where(places, _any)
    if not mine or function_of(mine[0].frame) == "forward" or mine[0].share < LOOP_SHARE * whole:
        return []
    return [
        f"{percent(mine[0].share / whole)} of launches come from {mine[0].frame}: turn a loop over "
        "samples or time steps there into one tensor expression"
    ]


def _any(_: FrameShare) -> bool:
    return True


def _busy(busy: float, sm: float | None) -> str:
    text = f"GPU busy {busy:.0f}% of the time"
    return text if sm is None else f"{text}, on {percent(sm / 100)} of its multiprocessors"


def _issued(row: GpuStep) -> int:
    return row.forward_ns + row.backward_ns + row.optimizer_ns
