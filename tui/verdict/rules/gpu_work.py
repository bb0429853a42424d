"""What the counters show a busy GPU busy with, and what could be done about it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ...messages import Settings
from ..code_places import main_places, multiplies
from ..findings import Evidence, Finding, Forecast, Kind, Severity
from ..forecast.interval import at_least
from ..forecast.measured import filled, fused, moving, on_tensor_cores
from ..format import percent, times
from ..gpu_activity import GpuActivity
from ..idle_ledger import uses_tensor_cores
from ..scoring import severity_of, speedup_of, state
from ..thresholds import gpu as limits
from ..thresholds.causes import LOOP_GIVES
from ..thresholds.hysteresis import ENTER_SHARE, WARNING_SHARE
from ..window import RunFacts


@dataclass(frozen=True, slots=True)
class Work:
    """Activity as parts of the time in which the GPU was busy at all, 0 to 1."""

    busy: float
    sm: float
    tensor: float
    fp32: float
    dram: float
    on_tensor_cores: bool = False
    """By its settings products run in a half type or tf32: what fp32 units do is something else."""
    products: bool = False
    """Something shows matrix products: fp32 units are as busy with pointwise arithmetic."""
    in_tf32: bool = False
    """By its settings they run in tf32."""
    host: float = 0.0
    """Part of a step that would be left if the net's kernels took no time: the host's, which they
    hide now."""
    replans: bool = False
    """Attention behind padding masks, of batches that differ in length: in a half type cuDNN plans
    its kernels anew for each length."""
    one_call: str = ""
    """What to do instead, where the net is called for one part of its batch after another."""

    def evidence(self) -> tuple[Evidence, ...]:
        """The counters as read."""
        return (
            Evidence(f"the GPU is busy {percent(self.busy)} of the time", "gpm", self.busy),
            Evidence(
                f"of that, tensor cores {percent(self.tensor)}, fp32 units {percent(self.fp32)}, "
                f"memory {percent(self.dram)}",
                "gpm",
                self.tensor,
            ),
        )


def work_of(
    activity: GpuActivity | None,
    settings: Settings | None = None,
    products: bool = False,
    paused: float = 0.0,
    host: float = 0.0,
    replans: bool = False,
) -> Work | None:
    """None where a counter is missing, or the GPU is idle too often for them to show what
    limits: between the pauses, which hold `paused` of the time. `products`: matrix products were
    seen. `host` and `replans`: as in `Work`."""
    if activity is None or activity.busy is None:
        return None
    if activity.busy < 100 * limits.GPU_BUSY * (1.0 - paused):
        return None
    if (
        activity.sm is None
        or activity.tensor is None
        or activity.fp32 is None
        or activity.dram is None
    ):
        return None
    busy = activity.busy / 100
    parts = (
        part / 100 / busy for part in (activity.sm, activity.tensor, activity.fp32, activity.dram)
    )
    sm, tensor, fp32, dram = (min(1.0, part) for part in parts)
    seen = products or tensor >= limits.TENSOR_SEEN
    on_tensor_cores = uses_tensor_cores(settings)
    in_tf32 = _in_tf32(settings)
    return Work(
        min(1.0, busy), sm, tensor, fp32, dram, on_tensor_cores, seen, in_tf32, host, replans
    )


def _in_tf32(settings: Settings | None) -> bool:
    """A program that lets fp32 products run in tf32, which is not PyTorch's default, has some: also
    where the parameters' type is not known."""
    if settings is None or settings.autocast != "" or not uses_tensor_cores(settings):
        return False
    return settings.parameter_dtype in ("float32", None)


def products_seen(window: RunFacts) -> bool:
    """Matrix products, by the graph of a backward (which showed them to run without autocast), by
    parameters so large that they are matrices, or by the samples: functions, modules and lines that
    multiply."""
    settings = window.settings
    if settings is not None:
        tensors, held = settings.parameters or 0, settings.parameter_bytes or 0
        if settings.autocast == "" or 0 < tensors * limits.MATRIX_BYTES <= held:
            return True
    return any(map(multiplies, main_places(window)))


TF32_LINE: Final = 'torch.set_float32_matmul_precision("high")'
BF16_LINE: Final = 'with torch.autocast("cuda", torch.bfloat16)'


def precision(work: Work) -> Finding | None:
    """Matrix products in fp32 while the tensor cores rest."""
    if work.tensor >= limits.TENSOR_ABSENT or work.fp32 < limits.FP32_HEAVY:
        return None
    if work.on_tensor_cores or not work.products:
        return None
    products = min(1.0, work.fp32 / limits.FP32_FULL) * work.busy
    tf32, bf16 = (
        _as_far_as_the_host_keeps_up(
            work, 1 - on_tensor_cores(work.fp32, work.dram, work.sm, ratio, bytes_left)
        )
        for ratio, bytes_left in ((limits.TF32_RATIO, 1.0), (limits.BF16_RATIO, 0.5))
    )
    first, advice = (
        bf16,
        (
            f"bf16: {BF16_LINE}, about {times(speedup_of(bf16))}",
            f"or tf32, one line: {TF32_LINE}, about {times(speedup_of(tf32))}",
        ),
    )
    if work.replans or speedup_of(bf16) < limits.BF16_WORTH * speedup_of(tf32):
        if work.replans:
            second = (
                f"or bf16, {BF16_LINE} and torch.backends.cuda.enable_cudnn_sdp(False), about "
                f"{times(speedup_of(bf16))}: cuDNN plans its attention anew for each new length, "
                "which can take longer than the step"
            )
        else:
            second = f"or bf16: {BF16_LINE}, which adds launches, and the host is the limit then"
        first = tf32
        advice = (f"tf32, one line: {TF32_LINE}, about {times(speedup_of(tf32))}", second)
    headline = f"matrix products run in fp32: about {percent(products)} of the time"
    return _estimate("compute", "precision", first, headline, work, advice)


def _as_far_as_the_host_keeps_up(work: Work, saved: float) -> float:
    """Of a step, where kernels save this part of the time in which the GPU is busy."""
    return min(work.busy * saved, 1.0 - work.host)


def fp32_arithmetic(work: Work) -> Finding | None:
    """The fp32 units are busy and nothing shows matrix products: then no other precision is known
    to help."""
    if work.tensor >= limits.TENSOR_ABSENT or work.fp32 < limits.FP32_HEAVY:
        return None
    if work.on_tensor_cores or work.products or work.dram >= limits.DRAM_HEAVY:
        return None
    return state(
        "compute",
        "fp32",
        "info",
        f"the GPU is the limit: fp32 arithmetic, its units busy {percent(work.fp32)} of the time",
        work.evidence(),
        (
            "fuse pointwise work: torch.compile(model)",
            "one step in torch.profiler names the kernels: if they are matrix products, "
            'torch.autocast("cuda", torch.bfloat16) moves them to the tensor cores',
        ),
    )


def bandwidth(work: Work) -> Finding | None:
    """The device's memory is the limit."""
    if work.dram < limits.DRAM_HEAVY or work.tensor >= 0.30:
        return None
    least, most = (work.busy * (1 - fused(work.dram, part)) for part in limits.FUSION_SAVES)
    found = _estimate(
        "memory-bandwidth",
        None,
        (least + most) / 2,
        f"the GPU's memory is busy {percent(work.dram)} of the time, its tensor cores "
        f"{percent(work.tensor)}",
        work,
        (
            "fuse the pointwise work: torch.compile(model)",
            "move fewer bytes: bf16 activations, channels_last, a fused norm or optimizer",
        ),
    )
    text = f"fusing its kernels gives {times(speedup_of(least))} where kernels fuse in pairs, "
    text += f"{times(speedup_of(most))} where all memory traffic goes"
    return replace(
        found,
        evidence=(*found.evidence, Evidence(text, "gpm")),
        forecast=Forecast(speedup_of((least + most) / 2), speedup_of(least), speedup_of(most)),
    )


def saturated(work: Work) -> Finding | None:
    """Tensor cores as busy as large trainings get: nothing to fix, unless it is tf32."""
    if work.tensor < limits.TENSOR_HEALTHY or work.in_tf32:
        return None
    headline = f"the GPU is the limit and well used: tensor cores {percent(work.tensor)}"
    return state("compute", "saturated", "info", headline, work.evidence())


HALF: Final = (
    'torch.autocast("cuda", torch.bfloat16) runs products at twice the rate of tf32, on half the '
    "bytes"
)


def tf32(work: Work) -> Finding | None:
    """Tensor cores as busy, with products in tf32: bf16 takes half the time of them, and moves half
    the bytes. Hardly less than that: attention has kernels of its own in bf16 (1.37x, 2.03x, 2.33x
    and 2.37x were measured, of which this says 1.55x)."""
    if work.tensor < limits.TENSOR_HEALTHY or not work.in_tf32:
        return None
    halved = min(1.0, work.tensor / limits.TENSOR_FULL + moving(work.dram)) / 2
    saved = _as_far_as_the_host_keeps_up(work, halved)
    least = limits.TF32_GIVES * speedup_of(saved)
    found = _estimate(
        "compute",
        "precision",
        saved,
        f"matrix products run in tf32: tensor cores are busy {percent(work.tensor)} of the time",
        work,
        (f"bf16, {times(least)} or more: {HALF}",),
    )
    return replace(found, forecast=at_least(least))


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
    found = _estimate(
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
    found = _estimate(
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
    return replace(found, severity=severity, forecast=at_least(found.speedup or 1.0))


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
    found = _estimate(
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
    found = _estimate(
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
    tf32,
    precision,
    fp32_arithmetic,
    bandwidth,
    part_by_part,
    underfilled,
    misaligned,
)
"""The first that applies."""


def _estimate(
    kind: Kind,
    sub: str | None,
    saved: float,
    headline: str,
    work: Work,
    advice: tuple[str, ...],
    is_bound: bool = False,
    gain: float | None = None,
) -> Finding:
    """A finding about the GPU's own work, by the roofline: `saved` is the part of the step that
    goes; `gain` is what that gives where it is more than the step becomes shorter."""
    return Finding(
        kind=kind,
        sub=sub,
        severity=severity_of(saved),
        share=saved,
        share_low=None,
        share_high=None,
        speedup=gain or speedup_of(saved),
        speedup_is="bound" if is_bound else "estimate",
        headline=headline,
        evidence=work.evidence(),
        advice=advice,
    )
