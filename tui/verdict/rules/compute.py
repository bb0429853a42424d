"""With a GPU: nothing on the host holds the run back, so the GPU does."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ...messages import Settings
from ..code_places import ATTENTION_CALL, attends, call_at, main_places, multiplies
from ..findings import Evidence, Finding, Forecast, Kind, Severity
from ..forecast.interval import at_least
from ..forecast.measured import filled, fused, on_tensor_cores
from ..format import ms, percent, times
from ..gpu_activity import GpuActivity
from ..gpu_clock import OnDevice, counted_by, on_device
from ..idle_ledger import uses_tensor_cores
from ..memory.trends import larger_batch, to_eights
from ..scoring import severity_of, speedup_of, state
from ..step_time import wall_of
from ..thresholds import gpu as limits
from ..thresholds.hysteresis import ENTER_SHARE, MOST_EVIDENCE, WARNING_SHARE
from ..window import RunFacts, StepWindow


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
    activity: GpuActivity | None, settings: Settings | None = None, products: bool = False
) -> Work | None:
    """None where a counter is missing, or the GPU is idle too often for them to show what
    limits. `products`: matrix products were seen."""
    if activity is None or activity.busy is None or activity.busy < 100 * limits.GPU_BUSY:
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
    return Work(min(1.0, busy), sm, tensor, fp32, dram, uses_tensor_cores(settings), seen)


def products_seen(window: RunFacts) -> bool:
    """Matrix products, by the graph of a backward (which showed them to run without autocast) or
    by the samples: functions, modules and lines that multiply."""
    if window.settings is not None and window.settings.autocast == "":
        return True
    return any(map(multiplies, main_places(window)))


def precision(work: Work) -> Finding | None:
    """Matrix products in fp32 while the tensor cores rest."""
    if work.tensor >= limits.TENSOR_ABSENT or work.fp32 < limits.FP32_HEAVY:
        return None
    if work.on_tensor_cores or not work.products:
        return None
    products = min(1.0, work.fp32 / limits.FP32_FULL) * work.busy
    tf32, bf16 = (
        work.busy * (1 - on_tensor_cores(work.fp32, work.dram, work.sm, ratio))
        for ratio in (limits.TF32_RATIO, limits.BF16_RATIO)
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


def may_wait(window: StepWindow) -> bool:
    """In a job of several ranks: collectives hold a part of this rank's time that matters, or
    nobody knows how much. NCCL's kernels keep the GPU busy and hardly a multiprocessor, whether
    they move data or wait for a late rank."""
    if window.world_size < 2:
        return False
    return window.collectives is None or window.collectives.share >= ENTER_SHARE


def with_collectives(window: StepWindow, work: Work) -> Finding:
    """What can be claimed of a busy GPU of such a rank: nothing about its own kernels."""
    known, others = window.collectives, window.world_size - 1
    evidence = work.evidence()
    if known is None:
        headline = "the GPU is busy: with its own kernels or in collectives is not known"
        return state("compute", None, "info", headline, evidence, (MEASURE_COLLECTIVES,))
    headline = f"the GPU is busy, {percent(known.share)} of the time in collectives"
    text = f"it waits for {'another rank' if others == 1 else 'other ranks'} "
    text += f"{percent(known.waiting)} of the time; {percent(known.transfer)} is transfer"
    found = Evidence(text, "collectives", known.share)
    return state("compute", None, "info", headline, (found, *evidence))


def saturated(work: Work) -> Finding | None:
    """Tensor cores as busy as large trainings get: nothing to fix."""
    if work.tensor < limits.TENSOR_HEALTHY:
        return None
    headline = f"the GPU is the limit and well used: tensor cores {percent(work.tensor)}"
    return state("compute", "saturated", "info", headline, work.evidence())


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
    # Samples a second of a larger batch: what every step costs once is shared out as well.
    return replace(found, forecast=at_least(found.speedup or 1.0))


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


KINDS_OF_WORK: Final[tuple[Callable[[Work], Finding | None], ...]] = (
    saturated,
    precision,
    fp32_arithmetic,
    bandwidth,
    underfilled,
    misaligned,
)
"""The first that applies."""


ABOUT_ITS_OWN_KERNELS: Final = ("saturated", "underfilled")
"""Subs that an idle unit shows, or the lack of any other cause: a collective looks the same."""
MEASURE_COLLECTIVES: Final = (
    "collectives are measured by PyTorch's flight recorder: on by default since torch 2.11, before "
    "that TORCH_FR_BUFFER_SIZE=2000 (2.8 to 2.10) or TORCH_NCCL_TRACE_BUFFER_SIZE=2000"
)


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


def for_this_run(found: Finding, window: StepWindow) -> tuple[str, ...]:
    """The finding's advice, made concrete where the window knows more than the counters."""
    if found.sub == "underfilled":
        larger = larger_batch(window, "each kernel then fills more of the GPU")
        return (larger, *found.advice[1:])
    if found.sub == "misaligned":
        size = window.loaders[0].batch_size if window.loaders else None
        if size is not None and size % 8:
            return (*found.advice, f"batch_size {size} → {to_eights(size)}, a multiple of 8")
    if found.kind == "memory-bandwidth":
        attention = next((place for place in main_places(window) if attends(place)), None)
        if attention is not None:
            fused = "F.scaled_dot_product_attention does it in one kernel, without the scores"
            return (f"{call_at(attention, ATTENTION_CALL)}: {fused}", *found.advice)
    return found.advice


def compute(window: StepWindow) -> Finding | None:
    """The GPU is the limit; on the host's clock alone, it or launching to it. One that idles is not
    (`idle_gpu`).

    The sub is what the counters show it busy with; None without them.
    """
    if not window.gpu_present:
        return None
    device = on_device(window)
    work = work_of(window.activity, window.settings, products_seen(window))
    if work is not None:
        for judge in KINDS_OF_WORK:
            if (found := judge(work)) is not None:
                if found.sub in ABOUT_ITS_OWN_KERNELS and may_wait(window):
                    return with_collectives(window, work)
                evidence = (*found.evidence, *_lag(device))[:MOST_EVIDENCE]
                return replace(found, evidence=evidence, advice=for_this_run(found, window))
    evidence = (*_lag(device), *_busy(window.activity))
    least = percent(ENTER_SHARE)
    if device is None or device.caught_up is None or _starved(device, window.activity):
        headline = f"no host cause above {least}: the GPU or kernel launches are the limit"
        return state("compute", None, "info", headline, (_issued(window), *evidence))
    which = "the GPU or its collectives are" if may_wait(window) else "the GPU is"
    headline = f"{which} the limit: nothing else takes {least} of a step"
    return state("compute", None, "info", headline, evidence)


def _starved(device: OnDevice, activity: GpuActivity | None) -> bool:
    """The GPU keeps up with the host, and its utilisation is unknown."""
    unknown = activity is None or activity.busy is None
    return unknown and (device.caught_up or 0.0) >= limits.CAUGHT_UP_STEPS


def _issued(window: StepWindow) -> Evidence:
    rows = window.steps
    wall = max(1, sum(map(wall_of, rows)))
    part = min(1.0, sum(row.forward_ns + row.backward_ns + row.optimizer_ns for row in rows) / wall)
    text = f"{percent(part)} of the time is spent issuing forward, backward and optimizer"
    return Evidence(text, "hook", part)


def _lag(device: OnDevice | None) -> tuple[Evidence, ...]:
    if device is None or device.lag_ns is None or device.abstains:
        return ()
    text = f"the GPU runs {ms(device.lag_ns)} behind the host at the end of a step"
    found = [Evidence(text, "event", device.lag_ns / 1e6, "ms")]
    if device.hidden_ns >= limits.HIDDEN_WORTH * device.step_ns:
        text = f"{ms(device.hidden_ns)} of data wait per step is hidden behind its work"
        found.append(Evidence(text, "event", device.hidden_ns / 1e6, "ms"))
    return tuple(found)


def _busy(activity: GpuActivity | None) -> tuple[Evidence, ...]:
    if activity is None or activity.busy is None:
        return ()
    source = counted_by(activity)
    found = [Evidence(f"GPU busy {activity.busy:.0f}% of the time", source, activity.busy, "%")]
    if activity.tensor is not None:
        text = f"its tensor cores {activity.tensor:.0f}%"
        if activity.dram is not None:
            text += f", its memory {activity.dram:.0f}%"
        found.append(Evidence(text, source, activity.tensor, "%"))
    return tuple(found)
