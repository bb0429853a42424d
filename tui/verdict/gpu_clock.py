"""What no step on the GPU's clock holds, and what goes over the link to the GPU and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Final, Literal

from ..settings import HostCopies
from ..steps import Step
from .code_places import (
    clips,
    copies_to_gpu,
    empties_cache,
    main_places,
    recurs,
    share_held,
    share_seen,
    waits_for_gpu,
)
from .gpu_activity import GpuActivity
from .host_tensors import filled_then_copied
from .loader import training_loader
from .on_device import first_known, idle_of, on_device, paired
from .place_names import own_frame
from .stack_samples import FrameShare
from .statistics import Share, at_most, beyond, times, within_one
from .step_time import paused_of, spent, wall_of
from .thresholds import causes as limits
from .thresholds.gpu import LOOP_SHARE
from .thresholds.hysteresis import CONTRIBUTOR
from .traced_places import traced_forward
from .window import RunFacts, StepWindow

LONG_BY: Final = limits.OUTLIER_LEAST

# What no step on the GPU's clock holds: epochs that begin and pauses, in steps between those.


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Parts of the window's time, 0 to 1, in kinds of step that the GPU's clock did not measure."""

    starting: float
    """The loader's start-up, and the wait for data in steps that it makes long."""
    paused: float
    """Evaluation, checkpoints and compilation…"""
    compiling: float
    """…of it compilation."""

    @property
    def left(self) -> float:
        """Of the time, what is spent in steps like the measured ones."""
        return max(0.0, 1.0 - self.starting - self.paused)


@lru_cache(maxsize=4)
def unmeasured(window: StepWindow) -> Unmeasured:
    """A few steps in which an epoch begins may take longer than all others together, and where
    only one step in ten is measured they are rarely among them. Worked out once a window."""
    numbers = {host.number for host, _ in paired(window)}
    kinds = kinds_of(window.steps)
    measured = {
        kind for row, kind in zip(window.steps, kinds, strict=True) if row.number in numbers
    }
    others = [row for row, kind in zip(window.steps, kinds, strict=True) if kind not in measured]
    whole = spent(window.steps).wall_ns
    if whole <= 0:
        return Unmeasured(0.0, 0.0, 0.0)
    long = {row.number for row, kind in zip(window.steps, kinds, strict=True) if kind == "long"}
    waits = sum(row.data_ns for row in others if row.number in long)
    starting = sum(row.startup_ns for row in others) + waits
    paused, compiling = sum(map(paused_of, others)), sum(row.compile_ns for row in others)
    return Unmeasured(starting / whole, paused / whole, compiling / whole)


StepKind = Literal["checkpoint", "evaluation", "compile", "start", "long", "usual"]
"""Of what is in it now and then; "long" is one that takes half as long again as the median."""


def kinds_of(rows: Sequence[Step]) -> list[StepKind]:
    """The kind of each row."""
    if not rows:
        return []
    usual_ns = median(wall_of(row) / row.count for row in rows)
    return [_kind_of(row, usual_ns) for row in rows]


def _kind_of(row: Step, usual_ns: float) -> StepKind:
    if row.checkpoint_ns:
        return "checkpoint"
    if row.evaluation_ns:
        return "evaluation"
    if row.compile_ns:
        return "compile"
    if row.startup_ns:
        return "start"
    return "long" if wall_of(row) / row.count > (1 + LONG_BY) * usual_ns else "usual"


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of a window."""

    share: float
    """Part of the time that they hold and in which the GPU does not work, 0 to 1."""
    rx_mb_s: float | None
    """PCIe traffic towards the device."""
    moving: float
    """Part of the time that the bytes on the link take at the rate that copies can have, 0 to 1."""
    pinned_mb_s: float
    """What copies alone can reach on this link: never less than what was read."""
    pageable_mb_s: float
    on_lines: float
    """Part of the training thread's samples on lines that copy, or fill what they copy."""
    pinned: bool | None
    batch_bytes: int | None
    tensors: int | None

    @property
    def by_samples(self) -> bool:
        """The share rests on stack samples alone: what the link moves would not explain it."""
        return self.share > self.moving

    @property
    def from_pageable(self) -> bool:
        """Some of it, though the loader's batches may be pinned: on the lines that copy the bytes
        go at less than half the rate that pinned memory has."""
        if not self.pinned:
            return True
        if not self.by_samples or not self.on_lines or self.rx_mb_s is None:
            return False
        return self.rx_mb_s / self.on_lines < limits.PINNED_AT_LEAST * self.pinned_mb_s

    @property
    def tiny(self) -> bool:
        """Many tensors a batch, each small; or the host is busy with copies of next to nothing."""
        if self.on_lines and not self.moving and self.rx_mb_s is not None:
            return True
        if self.tensors is None or self.batch_bytes is None:
            return False
        small = self.batch_bytes / max(1, self.tensors) < limits.TINY_COPY_BYTES
        return self.tensors >= limits.TINY_COPIES and small


def copies(window: RunFacts) -> Copies | None:
    """None without a GPU's clock, without a GPU utilisation counter, or with batches that lie on
    the GPU already. Of a rank of several, what its lines show at the most."""
    activity = window.activity
    if activity is None or activity.busy is None or on_device(window) is None:
        return None
    loader = window.loaders[0] if window.loaders else None
    if loader is not None and loader.batch_device not in (None, "cpu"):
        return None
    pinned = None if loader is None else loader.pinned
    seen = share_seen(window, copies_to_gpu)
    on_lines = seen.mean
    pinned_mb_s, pageable_mb_s = _peaks(activity, bool(pinned))
    unseen = pinned is None and not main_places(window)
    rate = pinned_mb_s if pinned or unseen else pageable_mb_s
    rx = activity.pcie_rx_mb_s
    moving = 0.0 if rx is None or rx < limits.COPY_LEAST_MB_S else min(1.0, rx / rate)
    if not pinned and moving > seen.high:
        # The host sits in a copy from pageable memory: what moves while it is elsewhere is pinned,
        # and so may be what nobody has looked at.
        moving = max(on_lines, moving * pageable_mb_s / pinned_mb_s)
    if on_lines < CONTRIBUTOR and any(map(recurs, main_places(window))):
        # The kernels of cuDNN's recurrent layers read over the link as well: 12.3 GB/s beside
        # batches that lay on an H200 already.
        moving = min(moving, _by_batches(window) / rate)
    if not moving and rx is not None and not _tiny(window):
        # Hardly anything moves: such lines wait for what the GPU had queued, or copy what is there
        # already. What they take beyond that are many small copies.
        on_lines = max(0.0, on_lines - queued(window))
    on_lines = min(on_lines, _by_count(window, pageable_mb_s))
    if window.world_size > 1:
        moving = min(moving, on_lines)  # NCCL uses the link as well
    on_lines += share_held(filled_then_copied(main_places(window))[0])
    return Copies(
        share=min(idle_of(window), max(moving, on_lines)),
        rx_mb_s=rx,
        moving=moving,
        pinned_mb_s=pinned_mb_s,
        pageable_mb_s=pageable_mb_s,
        on_lines=on_lines,
        pinned=pinned,
        batch_bytes=None if loader is None else loader.batch_bytes,
        tensors=None if loader is None else loader.batch_tensors,
    )


def _by_batches(window: RunFacts) -> float:
    """MB/s that the loader's batches take of the link; 0 where they are not known."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or loader.evaluation or not isinstance(window, StepWindow):
        return 0.0
    fetches = sum(row.fetches for row in window.steps)
    return 1e3 * (loader.batch_bytes or 0) * fetches / max(1, spent(window.steps).wall_ns)


def _peaks(activity: GpuActivity, pinned: bool) -> tuple[float, float]:
    """What copies from pinned and from pageable memory reach on this machine: by its link, and no
    less than the highest reading of such copies. A link that is not known is the one with which
    that reading fits."""
    seen = activity.pcie_rx_peak_mb_s or activity.pcie_rx_mb_s or 0.0
    of_link = limits.PINNED_MB_S if seen <= limits.PINNED_MB_S else limits.PINNED_GEN5_MB_S
    if activity.link_mb_s is not None:
        of_link = limits.LINK_REACHED * activity.link_mb_s
    fast = max(of_link, seen)
    slow = min(fast, max(limits.PAGEABLE_MB_S, 0.0 if pinned else seen))
    return fast, slow


def queued(window: RunFacts) -> float:
    """The most of the time, 0 to 1, for which copies can have waited for work that was queued: the
    lag at the start of each forward. All of it where that is not known."""
    device = on_device(window)
    if device is None or device.abstains or not isinstance(window, StepWindow):
        return 1.0
    known = (first_known(row.lag_data_ns, row.lag_start_ns) for row in device.rows)
    lags = [lag for lag in known if lag is not None]
    if not lags:
        return 1.0
    fetched = sum(row.fetches or row.backwards for row in window.steps) / max(1, window.observed)
    return min(1.0, fetched * sum(lags) / len(lags) / device.step_ns)


def copied_from_pageable(window: StepWindow) -> bool:
    """The loader's batches are: PyTorch waits then until the GPU has done all that is queued, as a
    read does (`cudaStreamSynchronize` behind the copy). Whether a batch is pinned is known of one
    on the CPU alone."""
    loader = training_loader(window)
    return loader is not None and loader.pinned is False and bool(loader.batch_bytes)


def _by_count(window: RunFacts, pageable_mb_s: float) -> float:
    """What the copies of a traced step can take at the most, 0 to 1: what their lines take beyond
    that waits for something else. All of it where no step was traced, or none of its copies is
    seen: a loader may make them as it gives a batch, which is not traced."""
    seen, device = traced_forward(window), on_device(window)
    copied = None if seen is None else seen.host_copies
    if copied is None or not copied.copies or device is None:
        return 1.0
    moved_us = copied.bytes / pageable_mb_s
    return 1e3 * (limits.A_COPY_US * copied.copies + moved_us) / device.step_ns


def _tiny(window: RunFacts) -> bool:
    loader = window.loaders[0] if window.loaders else None
    return loader is not None and (loader.batch_tensors or 0) >= limits.TINY_COPIES


# Parameters that were left on the CPU, with all that is looked up in them and concatenated.


def crossing(window: StepWindow) -> float:
    """The most of a step, 0 to 1, in which the GPU can wait for what the host computes, by the
    bytes that come back over the link: parameters lie on the CPU beside a net on the GPU, and their
    gradients come back in each step. A checkpoint crosses it too, so that a window that holds one
    shows nothing."""
    settings, activity = window.settings, window.activity
    if settings is None or not settings.host_parameters:
        return 0.0
    if activity is None or any(row.checkpoint_ns for row in window.steps):
        return 0.0
    received, sent = activity.pcie_rx_mb_s or 0.0, activity.pcie_tx_mb_s or 0.0
    if sent < limits.CROSSING_BACK * received or sent_bytes(window) < limits.CROSSING_BYTES:
        return 0.0
    return min(1.0, sent * 1e6 / limits.CROSSING_BYTES_PER_S)


def made_on_host(window: RunFacts) -> HostCopies | None:
    """By a traced step: its copies to the GPU, where most of what they bring holds no data."""
    seen = traced_forward(window)
    moved = None if seen is None else seen.host_copies
    if moved is None or moved.made_bytes < LOOP_SHARE * max(1, moved.bytes):
        return None
    return moved


def computed_in_trace(window: StepWindow) -> Share:
    """The part of a step, 0 to 1, that the host spends on operations on tensors of the CPU, by the
    clock of a traced step. Whatever the GPU has queued meanwhile, of a host that never waits for it
    a step is as long as what the host does: what goes there is given back as far as the GPU idles.
    Nothing where no step was traced."""
    seen, device = traced_forward(window), on_device(window)
    computed = None if seen is None else seen.on_host
    if seen is None or computed is None or device is None:
        return Share(0.0, 0.0, 0.0)
    whole_ns = 1e3 * (seen.wall_us or 0) or device.step_ns
    return times(Share(*limits.OF_ANOTHER_STEP), within_one(1e3 * computed.us / whole_ns))


def computing(place: FrameShare) -> bool:
    """A line of the user's own that launches, or computes on the CPU: what it calls in C leaves no
    frame. None that waits for the GPU, or copies to it."""
    own = place.phase == "forward" and place.frame == own_frame(place)
    apart = (waits_for_gpu, copies_to_gpu, empties_cache, clips)
    return own and not any(which(place) for which in apart)


def too_long_to_launch(window: StepWindow, dry: float) -> Share:
    """The part of the time, 0 to 1, that such lines take beyond what they can need for launching:
    the GPU, which has nothing to run there for `dry` of it, is busy for too little. A library's
    Python may launch ever so slowly, and is none of it. Nothing where it is not known whether the
    thread had a core."""
    most = None if window.activity is None else window.activity.most_launching
    if most is None or window.host.run_delay is None:
        return Share(0.0, 0.0, 0.0)
    launching = most + window.host.run_delay
    beside = beyond(share_seen(window, computing), launching)
    return at_most(beside, max(0.0, dry - launching))


def sent_bytes(window: StepWindow) -> float:
    """Bytes over the link from the GPU to the host in a step; 0 where nobody counts them."""
    activity, total = window.activity, spent(window.steps)
    if activity is None or activity.pcie_tx_mb_s is None or not total.steps:
        return 0.0
    return activity.pcie_tx_mb_s * 1e6 * total.wall_ns / 1e9 / total.steps
