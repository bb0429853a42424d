"""What a busy GPU is busy with: each kind of work, judged from the counters over the busy time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from probe.wire.messages import Settings
from tui.verdict import policy
from tui.verdict.bound import plain, severity_of, speedup_of
from tui.verdict.figures import percent, times
from tui.verdict.findings import Evidence, Finding, Kind
from tui.verdict.forecast.roofline import filled, fused, on_tensor_cores
from tui.verdict.window import GpuActivity


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

    def told(self) -> tuple[Evidence, ...]:
        """The counters, as they were read."""
        return (
            Evidence(f"the GPU is busy {percent(self.busy)} of the time", "gpm", self.busy),
            Evidence(
                f"of that, tensor cores {percent(self.tensor)}, fp32 units {percent(self.fp32)}, "
                f"memory {percent(self.dram)}",
                "gpm",
                self.tensor,
            ),
        )


def work_of(told: GpuActivity | None, settings: Settings | None = None) -> Work | None:
    """None where a counter is missing, or the GPU is idle too often for them to say what limits."""
    if told is None or told.busy is None or told.busy < 100 * policy.GPU_BUSY:
        return None
    if told.sm is None or told.tensor is None or told.fp32 is None or told.dram is None:
        return None
    busy = told.busy / 100
    parts = (part / 100 / busy for part in (told.sm, told.tensor, told.fp32, told.dram))
    sm, tensor, fp32, dram = (min(1.0, part) for part in parts)
    return Work(min(1.0, busy), sm, tensor, fp32, dram, _uses_tensor_cores(settings))


def _uses_tensor_cores(settings: Settings | None) -> bool:
    if settings is None:
        return False
    halves = ("bfloat16", "float16")
    if settings.autocast in halves or settings.parameter_dtype in halves:
        return True
    return settings.matmul_precision in ("high", "medium") and settings.cudnn_tf32 is not False


def precision(work: Work) -> Finding | None:
    """Matrix products in fp32 while the tensor cores rest."""
    if work.tensor >= policy.TENSOR_ABSENT or work.fp32 < policy.FP32_HEAVY:
        return None
    if work.on_tensor_cores:
        return None
    products = min(1.0, work.fp32 / policy.FP32_FULL) * work.busy
    tf32, bf16 = (
        work.busy * (1 - on_tensor_cores(work.fp32, work.dram, work.sm, ratio))
        for ratio in (policy.TF32_RATIO, policy.BF16_RATIO)
    )
    return _estimate(
        "compute",
        "precision",
        bf16,
        f"matrix products run in fp32: about {percent(products)} of the time",
        work,
        (
            f'bf16: with torch.autocast("cuda", torch.bfloat16), about {times(speedup_of(bf16))}',
            'or tf32, one line: torch.set_float32_matmul_precision("high"), about '
            f"{times(speedup_of(tf32))}",
        ),
    )


def bandwidth(work: Work) -> Finding | None:
    """The device's memory is the limit."""
    if work.dram < policy.DRAM_HEAVY or work.tensor >= 0.30:
        return None
    least, most = (work.busy * (1 - fused(work.dram, part)) for part in policy.FUSION_SAVES)
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
    text = f"fusing its kernels gives {times(speedup_of(least))} where they go together in pairs, "
    text += f"{times(speedup_of(most))} where none of the traffic is left"
    return replace(found, evidence=(*found.evidence, Evidence(text, "gpm")))


def saturated(work: Work) -> Finding | None:
    """Tensor cores as busy as large trainings get: nothing to fix."""
    if work.tensor < policy.TENSOR_HEALTHY:
        return None
    headline = f"the GPU is the limit and well used: tensor cores {percent(work.tensor)}"
    return plain("compute", "saturated", "info", headline, work.told())


def underfilled(work: Work) -> Finding | None:
    """Kernels run all the time, and none of them fills the device. One under which no unit works
    at all waits: a collective spins until the last rank is there."""
    if max(work.tensor, work.fp32, work.dram) < policy.SPINS:
        return None
    if (
        work.sm >= policy.UNDERFILLED_SM
        or work.dram >= policy.UNDERFILLED_DRAM
        or work.tensor >= policy.UNDERFILLED_TENSOR
    ):
        return None
    empty = (1 - work.sm) * work.busy
    return _estimate(
        "compute",
        "underfilled",
        empty,
        f"the GPU is busy, but only {percent(work.sm)} of its multiprocessors are",
        work,
        (
            "a larger batch: each kernel then has work for more of the GPU",
            "fuse small kernels (torch.compile); CUDA graphs will not help, nothing waits for "
            "launches",
        ),
        is_bound=True,
        gain=speedup_of(work.busy * (1 - filled(work.tensor, work.fp32, work.dram))),
    )


def misaligned(work: Work) -> Finding | None:
    """Tensor cores that work at a fraction of their rate, on multiprocessors that are all busy,
    with little for the memory and the fp32 units to do: products whose sizes they cannot take
    whole: misaligned shapes, small tiles. What tensor cores and memory do
    would take so much of the time at their full rates; the rest is slow products."""
    if not policy.TENSOR_ABSENT <= work.tensor < policy.MISALIGNED_TENSOR:
        return None
    if work.sm < policy.MISALIGNED_SM or work.fp32 >= policy.MISALIGNED_FP32:
        return None
    explained = work.tensor / policy.TENSOR_FULL + work.dram / policy.DRAM_FULL
    if work.sm - explained < policy.MISALIGNED_UNEXPLAINED:
        return None
    saved = (1 - work.tensor / policy.TENSOR_HEALTHY) * work.busy
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
    # Counters alone tell it from small tiles no better than that: no alarm.
    return replace(found, severity="warning" if saved >= policy.WARNING_SHARE else "info")


KINDS_OF_WORK: Final[tuple[Callable[[Work], Finding | None], ...]] = (
    saturated,
    precision,
    bandwidth,
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
        evidence=work.told(),
        advice=advice,
    )
