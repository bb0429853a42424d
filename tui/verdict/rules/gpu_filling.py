"""What keeps a GPU busy without filling it; and the order in which all kinds of work are judged."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ..findings import Finding, Forecast, Severity
from ..forecast.interval import at_least
from ..forecast.measured import filled, moving
from ..format import percent
from ..scoring import speedup_of
from ..thresholds import gpu as limits
from ..thresholds.causes import LOOP_GIVES
from ..thresholds.hysteresis import ENTER_SHARE, WARNING_SHARE
from .gpu_work import (
    Work,
    bandwidth,
    estimate,
    fp32_arithmetic,
    half_type,
    precision,
    saturated,
)


def underfilled(work: Work) -> Finding | None:
    """Kernels run all the time, and none of them fills the device. One under which no unit works
    at all waits: a collective spins until the last rank is there."""
    if max(work.tensor, work.fp32, work.dram) < limits.SPINS:
        return None
    if (
        work.sm >= limits.UNDERFILLED_SM
        or work.dram >= limits.UNDERFILLED_DRAM
        or work.tensor >= limits.UNDERFILLED_TENSOR
    ):
        return None
    empty = (1 - work.sm) * work.busy
    found = estimate(
        "compute",
        "underfilled",
        empty,
        f"the GPU is busy, but only {percent(work.sm)} of its multiprocessors are",
        work,
        (
            "a larger batch: each kernel then fills more of the GPU",
            "fuse small kernels (torch.compile); CUDA graphs will not help, nothing waits for "
            "launches",
        ),
        is_bound=True,
        gain=speedup_of(work.busy * (1 - filled(work.tensor, work.fp32, work.dram))),
    )
    # Samples a second of a larger batch. Of kernels that fill a part of the multiprocessors as many
    # more run in their time; how much better it fills those that are busy is not known (8x as large
    # a batch gave an LSTM on 30 % of them 7.8x), nor what every step costs once.
    least = min(speedup_of(empty), found.speedup or 1.0)
    return replace(found, forecast=at_least(least))


def misaligned(work: Work) -> Finding | None:
    """Tensor cores that work at a fraction of their rate, on multiprocessors that are all busy,
    with little for the memory and the fp32 units to do: products whose sizes they cannot take
    whole: misaligned shapes, small tiles. What tensor cores and memory do
    would take so much of the time at their full rates; the rest is slow products."""
    if not limits.TENSOR_ABSENT <= work.tensor < limits.MISALIGNED_TENSOR:
        return None
    if work.sm < limits.MISALIGNED_SM or work.fp32 >= limits.MISALIGNED_FP32:
        return None
    explained = work.tensor / limits.TENSOR_FULL + work.dram / limits.DRAM_FULL
    if work.sm - explained < limits.MISALIGNED_UNEXPLAINED:
        return None
    saved = (1 - work.tensor / limits.TENSOR_HEALTHY) * work.busy
    found = estimate(
        "compute",
        "misaligned",
        saved,
        f"the multiprocessors are busy {percent(work.sm)} of the time and their tensor cores "
        f"{percent(work.tensor)}: sizes that do not fit them, or small tiles",
        work,
        (
            "pad sizes to multiples of 8, better of 64: hidden sizes, the head dimension, a "
            "vocabulary (50257 → 50304)",
            "one step in torch.profiler names the products: kernels with align1 or align2 in "
            "their names take odd sizes",
        ),
        is_bound=True,
    )
    # Counters alone hardly separate it from small tiles: no alarm. Other sizes get other kernels.
    severity: Severity = "warning" if saved >= WARNING_SHARE else "info"
    return replace(found, severity=severity, forecast=Forecast(found.speedup or 1.0, 1.0, None))


def cell_by_cell(work: Work, advice: str) -> Finding | None:
    """A loop over a recurrent cell keeps the device busy with the kernels of each time step. What
    tensor cores and memory do would take so much of the time at their full rates, one after the
    other, or at the least side by side; the rest is what such small kernels lose. Two nets under
    autocast gained 1.54x and 1.56x by cuDNN's kernels, 1.54x by this; three in tf32 1.12x at most
    (H200)."""
    if work.in_tf32:
        return None
    products, bytes_moved = min(1.0, work.tensor / limits.TENSOR_FULL), moving(work.dram)
    saved = work.busy * (1.0 - products - bytes_moved)
    if saved < ENTER_SHARE:
        return None
    found = estimate(
        "compute",
        "cells",
        saved,
        f"the GPU is busy with the kernels of one cell after the other: {percent(saved)} of the "
        "time is neither arithmetic nor memory traffic",
        work,
        (advice,),
    )
    most = speedup_of(work.busy * (1.0 - max(products, bytes_moved)))
    return replace(found, forecast=Forecast(speedup_of(saved), 1.0, most))


def part_by_part(work: Work) -> Finding | None:
    """A net called for one part of the batch after another keeps the device busy with kernels that
    leave multiprocessors without work, which those of the whole batch would fill. An LSTM in tf32,
    called for eight parts on 60 % of them, gained 4.5x by one call (H200); nothing is known beyond
    what is empty."""
    empty = (1.0 - work.sm) * work.busy
    if not work.one_call or empty < ENTER_SHARE:
        return None
    least = min(empty, work.busy * (1.0 - filled(work.tensor, work.fp32, work.dram)))
    found = estimate(
        "compute",
        "parts",
        empty,
        "the GPU is busy with one part of the batch after another, on "
        f"{percent(work.sm)} of its multiprocessors",
        work,
        (work.one_call,),
        is_bound=True,
    )
    return replace(found, forecast=at_least(max(1.0, LOOP_GIVES * speedup_of(least))))


KINDS_OF_WORK: Final[tuple[Callable[[Work], Finding | None], ...]] = (
    saturated,
    precision,
    fp32_arithmetic,
    bandwidth,
    part_by_part,
    underfilled,
    misaligned,
    half_type,
)
"""The first that applies."""
