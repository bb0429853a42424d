"""A window as a replay: what host and GPU did in its measured steps, each by its own clock."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Final

from ...steps import GpuStep, Step
from ..code_places import (
    BETWEEN,
    copies_to_gpu,
    empties_cache,
    main_places,
    recurs,
    share_where,
    waits_for_gpu,
    works_on_host,
)
from ..gpu_clock import StepKind, copied_from_pageable, kinds_of, unmeasured
from ..idle_ledger import idle_ledger
from ..on_device import enough, keeps_up_ns, on_device, paired
from ..pauses import clinging_parts, saving_part
from ..place_names import own_frame
from ..stack_samples import FrameShare
from ..step_time import spent
from ..thresholds import gpu as limits
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE, LEAST_LEFT, REPLAYED_ROWS
from ..window import StepWindow
from .replay import ISSUING, NET, StepReplay
from .segments import NEARLY, HostSeen, MeasuredSegment, lost_ns, segments_of, spans_of

_IDLE_FIRST = ("other", "checkpoint", "compile")
"""Segments in which nothing but the training's last kernels is at work, as a rule."""


def replay_of(window: StepWindow) -> StepReplay | None:
    """None without the GPU's clock, or where its alignment leaves open whether the GPU was behind:
    then shares of the time are all that is known."""
    device = on_device(window)
    if device is None or device.abstains:
        return None
    rows = _paired(window)
    if not enough([device for _, device, _, _ in rows]):
        return None
    saving = saving_part(window)
    spans = [spans_of(*row, saving) for row in rows]
    counts = _stand_for(window, [host for host, _, _, _ in rows])
    steps = sum(counts)
    lengths = [device.wall_ns / device.count for _, device, _, _ in rows]
    step_ns = sum(n * ns for n, ns in zip(counts, lengths, strict=True)) / steps
    keeps_up = keeps_up_ns(step_ns)
    busy_ns, dry_ns = _busy_ns(window, step_ns), _dry_share(window) * step_ns
    working = _working(spans, counts, steps, busy_ns, dry_ns, keeps_up)
    late = bool(window.loaders and window.loaders[0].num_workers)
    drained = _drained(spans, counts, step_ns)
    python = share_where(main_places(window), _is_own_work) if drained else 0.0
    waited = _waited_of(window)
    issued_ns = max(_most_issued_ns(window), _issued_alone_ns(spans, keeps_up))
    copied = _copied_of(window)
    seen = HostSeen(waited, copied, drained, python, issued_ns=issued_ns)
    lost = [lost_ns(row, work, keeps_up, seen) for row, work in zip(spans, working, strict=True)]
    waiting = sum(count for count, ns in zip(counts, lost, strict=True) if ns >= step_ns)
    if 0 < waiting < WAITS_SELDOM * steps:
        seen = replace(seen, between=_between(window))
    waits = _waited_ns(spans, counts, lost, waited)
    lags = [span.after_ns for row in spans for span in row]
    return StepReplay(
        steps=tuple(
            (count, segments_of(row, worked, keeps_up, late, seen, waited_ns))
            for count, row, worked, waited_ns in zip(counts, spans, working, waits, strict=True)
        ),
        step_ns=step_ns,
        lag_ns=spans[0][0].before_ns,
        ahead_ns=max([step_ns, *lags]),
        copies_wait=copied >= CONTRIBUTOR or copied_from_pageable(window),
    )


def host_alone(window: StepWindow) -> float:
    """The most that the host's own work can be of a step, 0 to 1, where the GPU was behind at every
    step: the shortest quarter of the host's steps. What it takes longer in others it waits, for a
    full queue of launches or a result. 1 where the GPU caught up."""
    device, rows = on_device(window), [(host, gpu) for host, gpu, _, _ in _paired(window)]
    if device is None or device.abstains or not enough([gpu for _, gpu in rows]):
        return 1.0
    step_ns = sum(gpu.wall_ns for _, gpu in rows) / sum(gpu.count for _, gpu in rows)
    if min(gpu.lag_start_ns or 0 for _, gpu in rows) <= keeps_up_ns(step_ns):
        return 1.0
    taken = sorted((host.end_ns - host.start_ns) / host.count for host, _ in rows)
    return min(1.0, taken[len(taken) // 4] / step_ns)


def _paired(window: StepWindow) -> list[tuple[Step, GpuStep, int, int]]:
    """The newest steps that both clocks have, with what clings to a pause in each and its share of
    the loader's start-up."""
    clinging_ns = {
        row.number: ns // row.count
        for row, ns in zip(window.steps, clinging_parts(window), strict=True)
    }
    since = min((row.number for row in window.gpu_steps[-REPLAYED_ROWS:]), default=0)
    return [
        (host, device, clinging_ns[host.number] * host.count, host.startup_ns)
        for host, device in paired(window)
        if device.number >= since and device.lag_start_ns is not None and device.wall_ns > 0
    ]


def _stand_for(window: StepWindow, rows: Sequence[Step]) -> list[float]:
    """For how many of the window's steps each row stands: where one step in ten is measured, two
    with an evaluation may be a fifth of them, and of the window a hundredth."""
    every: Counter[StepKind] = Counter()
    kinds: dict[int, StepKind] = {}
    for row, kind in zip(window.steps, kinds_of(window.steps), strict=True):
        every[kind] += row.count
        kinds[row.number] = kind
    measured: Counter[StepKind] = Counter()
    for row in rows:
        measured[kinds[row.number]] += row.count
    weights = {kind: every[kind] / measured[kind] for kind in measured}
    return [row.count * weights[kinds[row.number]] for row in rows]


def _busy_ns(window: StepWindow, step_ns: float) -> float | None:
    """What does not lie in the measured steps leaves the GPU idle: they hold all its work."""
    activity = window.activity
    if activity is None or activity.busy is None:
        return None
    held = max(LEAST_LEFT, unmeasured(window).left)
    return min(1.0, activity.busy / 100 / held) * step_ns


def _dry_share(window: StepWindow) -> float:
    """Part of the time in which the GPU ran dry within the phases though it was behind at their
    ends; less than would be a verdict is what counters and marks differ by."""
    ledger = idle_ledger(window)
    dry = 0.0 if ledger is None else ledger.dry
    return dry if dry >= ENTER_SHARE else 0.0


def _waited_of(window: StepWindow) -> float | None:
    """Part of the time in which the host waits for the GPU, as far as samples show. A copy from
    pageable memory is such a wait, and giving memory back to the device."""
    places = main_places(window)
    if not places:
        return None
    return share_where(places, _holds_up_host)


def _waited_ns(
    spans: Sequence[Sequence[MeasuredSegment]],
    counts: Sequence[float],
    lost: Sequence[float],
    waited: float | None,
) -> list[float | None]:
    """Of each step the host's waits, where samples show `waited` of the time: they lie in the steps
    in which it loses its lead, as where it reads the loss in one of ten."""
    every = sum(ns * count for ns, count in zip(lost, counts, strict=True))
    if waited is None or every <= 0:
        return [None] * len(lost)
    whole = sum(
        count * sum(one.host_ns for one in row) for row, count in zip(spans, counts, strict=True)
    )
    return [waited * whole * ns / every for ns in lost]


WAITS_SELDOM: Final = 0.5
"""Of the steps, those in which the host loses a lead of a step and more: where it does so in fewer,
what it works between the phases is what samples show there, not what is left of a wait that they
met less often than the clocks show it. 30 % of a wait of a second was work (an MLP that reads its
loss in one of ten steps on an H200: 4.4x by bf16 was said, 10.7x measured)."""
PASS_AT_MOST: Final = 2.0
"""Times `PASS_NS_A_TENSOR`: what issuing a net took at most was 1.4 of it."""


def _most_issued_ns(window: StepWindow) -> float:
    """What issuing the net takes the host in a step at the most, with the Python that samples show,
    where the number of its tensors tells that: a recurrent one walks through time, another may be
    called for parts of a batch."""
    settings, places = window.settings, main_places(window)
    if settings is None or not settings.parameters or not places:
        return inf
    if any(map(recurs, places)) or any(place.in_parts for place in places):
        return inf
    each_ns = PASS_AT_MOST * limits.PASS_NS_A_TENSOR
    total = spent(window.steps)
    python_ns = share_where(places, works_on_host) * total.wall_ns / max(1, total.steps)
    return window.passes * settings.parameters * each_ns + python_ns


def _issued_alone_ns(spans: Sequence[Sequence[MeasuredSegment]], keeps_up_ns: float) -> float:
    """What issuing the net took the host at the least in a step that began with nothing queued: no
    queue was full then, and tensors that the optimizer does not have (frozen ones, another net's)
    are in it. 0 where none began so."""
    alone = [
        sum(one.host_ns for one in row if one.name in NET)
        for row in spans
        if row and row[0].before_ns <= keeps_up_ns
    ]
    return min(alone, default=0.0)


DRAINED: Final = 0.8
DRAINED_LAG: Final = 0.1
DRAINED_APART: Final = 0.05
"""In four of five steps the host loses a lead of a tenth of the step, and goes on within 5 % of
that time from when the GPU is done with what was queued before. Work of its own would have to take
as long as the GPU's. Between the phases it waits for a result; within one its launch queue is full:
an AdamW that updates 147 tensors one by one was 118 ms of a GPT's 145 on an H100, and bf16 gave
2.1x."""


def _drained(
    spans: Sequence[Sequence[MeasuredSegment]], counts: Sequence[float], step_ns: float
) -> frozenset[str]:
    """Segments in which both clocks show the host to wait until the GPU is done, in most steps:
    whatever function it waits in."""
    drained: dict[str, float] = {}
    for row, count in zip(spans, counts, strict=True):
        for one in row:
            if one.name not in (*ISSUING, "other") or one.drop_ns < DRAINED_LAG * step_ns:
                continue
            if abs(one.host_ns - one.before_ns) <= DRAINED_APART * one.host_ns:
                drained[one.name] = drained.get(one.name, 0.0) + count
    return frozenset(name for name, steps in drained.items() if steps >= DRAINED * sum(counts))


def _is_own_work(place: FrameShare) -> bool:
    """A line of the user's own that calls no library that might wait."""
    return works_on_host(place) and own_frame(place) == place.frame


def _between(window: StepWindow) -> float:
    """Part of the time between the phases, 0 to 1, not waiting: its mean by Laplace's rule of
    succession, since none of few samples does not mean that there is none."""
    samples = 0 if window.stacks is None else window.stacks.main_samples
    met = samples * share_where(main_places(window), _is_between)
    return (met + 1.0) / (samples + 2.0)


def _is_between(place: FrameShare) -> bool:
    return place.phase in BETWEEN and not (place.in_net or _holds_up_host(place))


def _holds_up_host(place: FrameShare) -> bool:
    return waits_for_gpu(place) or _copies_batch(place) or empties_cache(place)


def _copies_batch(place: FrameShare) -> bool:
    """Of the training: an evaluation's copies wait in the evaluation."""
    return copies_to_gpu(place) and place.phase != "evaluation"


def _copied_of(window: StepWindow) -> float:
    return share_where(main_places(window), _copies_batch)


def _working(
    spans: Sequence[Sequence[MeasuredSegment]],
    counts: Sequence[float],
    steps: float,
    busy_ns: float | None,
    dry_ns: float,
    keeps_up_ns: float,
) -> list[list[float]]:
    """What the GPU works in each span, ns.

    All of it where it is behind the host at the end: that was queued. Where it had caught up, or
    the host lost its lead, the span holds gaps too: as much as the counters show idle,
    assigned first where it had least to do.
    """
    worked = [[0.0 if one.name == "data" else one.device_ns for one in row] for row in spans]
    if busy_ns is None:
        return worked
    idle_ns = sum(sum(row) * n for row, n in zip(worked, counts, strict=True)) - busy_ns * steps
    found = _without_gaps(spans, counts, idle_ns, dry_ns * steps, keeps_up_ns, 0.0)
    if _emptied(spans, found, counts):
        found = _without_gaps(spans, counts, idle_ns, dry_ns * steps, keeps_up_ns, NEARLY)
    return found


def _without_gaps(
    spans: Sequence[Sequence[MeasuredSegment]],
    counts: Sequence[float],
    idle_ns: float,
    dry_ns: float,
    keeps_up_ns: float,
    nearly: float,
) -> list[list[float]]:
    """What is left of the spans once `idle_ns` of all of them are gaps."""
    worked = [[0.0 if one.name == "data" else one.device_ns for one in row] for row in spans]
    for tier in range(3):
        held = [
            (at, index)
            for at, row in enumerate(spans)
            for index, one in enumerate(row)
            if one.name != "data" and _tier(one, keeps_up_ns, nearly) == tier
        ]
        room_ns = sum(worked[at][index] * counts[at] for at, index in held)
        if tier == 2:
            idle_ns = min(idle_ns, dry_ns)
        if idle_ns <= 0 or not room_ns:
            continue
        left = max(0.0, 1.0 - idle_ns / room_ns)
        for at, index in held:
            worked[at][index] *= left
        idle_ns -= room_ns * (1.0 - left)
    return worked


def _emptied(
    spans: Sequence[Sequence[MeasuredSegment]],
    worked: Sequence[Sequence[float]],
    counts: Sequence[float],
) -> bool:
    """Hardly any work is left to one of the net's two phases, and all of the time to the other: no
    net is like that, so the gaps lie in both."""
    left = []
    for name in ("forward", "backward"):
        held = lasted = 0.0
        for row, works, count in zip(spans, worked, counts, strict=True):
            for one, work in zip(row, works, strict=True):
                if one.name == name:
                    held, lasted = held + work * count, lasted + one.device_ns * count
        left.append(held / lasted if lasted else 1.0)
    return min(left) < NEARLY and max(left) > 1.0 - NEARLY


def _tier(span: MeasuredSegment, keeps_up_ns: float, nearly: float) -> int | None:
    """Where gaps are assigned first; None where there are none. `nearly`: so much of the span may
    be queued at its end, and it has gaps all the same."""
    if span.name in _IDLE_FIRST and span.after_ns <= keeps_up_ns:
        return 0
    if span.after_ns <= keeps_up_ns or span.drop_ns > keeps_up_ns:
        return 1
    if span.name in ISSUING and span.after_ns <= nearly * span.device_ns:
        return 1
    # What was queued as it began lasts for the lag: after that it may have run dry.
    return 2 if span.name in ISSUING and span.host_ns > span.before_ns else None


def on_tensor_cores(
    fp32: float,
    dram: float,
    sm: float,
    ratio: float,
    bytes_left: float = 1.0,
    updates: float = 0.0,
) -> float:
    """Time that is left when products run `ratio` times as fast as in fp32, of the time in which
    the GPU is busy.

    One after the other: the products at the new peak, on the bytes that they move meanwhile; what
    is neither, of which the traffic that goes with smaller activations shortens no more than its
    part; the multiprocessors' pauses between kernels, and the `updates`, which no number format
    shortens. Of 17 nets on H100s and H200s that nothing else held up the measured gain of bf16 was
    0.89 to 1.21 times this; pauses for checkpoints and a host that is the limit next took it down
    to half.
    """
    products = min(1.0, fp32 / limits.FP32_FULL)
    between = max(0.0, 1.0 - sm / limits.SM_FULL)
    others = max(0.0, 1.0 - products - between - updates)
    traffic = max(0.0, moving(dram) - updates)
    shorter = (1.0 - bytes_left) * min(others, traffic)
    return min(1.0, updates + products / ratio + between + others - shorter)


def moving(dram: float) -> float:
    """Time that memory traffic takes at the rate of a pure copy."""
    return min(1.0, dram / limits.DRAM_FULL)


def fused(dram: float, saved: float) -> float:
    """Time that is left when fusing kernels saves this part of the memory traffic."""
    return 1.0 - saved * moving(dram)


def filled(tensor: float, fp32: float, dram: float) -> float:
    """The least time in which a device without idle units does the same: its busiest unit's."""
    busiest = max(tensor / limits.TENSOR_FULL, fp32 / limits.FP32_FULL, moving(dram))
    return min(1.0, busiest)
