"""What the counters show a busy GPU busy with, and what could be done about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...settings import Settings
from ..busy_parts import uses_tensor_cores
from ..code_places import convolves, main_places, multiplies, share_held, share_where
from ..findings import Evidence, Finding, Forecast, Kind
from ..forecast.measured import fused, moving, on_tensor_cores
from ..format import percent, times
from ..gpu_activity import GpuActivity
from ..scoring import severity_of, speedup_of, state
from ..stack_samples import FrameShare
from ..thresholds import gpu as limits
from ..thresholds.hysteresis import ENTER_SHARE
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
    """They run in tf32: by its settings, or as tensor cores work on what is in no half type."""
    host: float = 0.0
    """Part of a step that would be left if the net's kernels took no time: the host's, which they
    hide now."""
    replans: bool = False
    """Attention behind padding masks, of batches that differ in length: in a half type cuDNN plans
    its kernels anew for each length."""
    recurs: bool = False
    """A recurrent net is at work: cuDNN walks through time as long in any type."""
    one_call: str = ""
    """What to do instead, where the net is called for one part of its batch after another."""
    updates: float = 0.0
    """Of the busy time the part in which the parameters are updated."""
    issuing: float = 0.0
    """Of `host`, what issuing the net takes."""
    castable: float = 1.0
    """Of a traced step the part, 0 to 1, in operations that autocast computes in half precision; 1
    where none was traced."""

    @property
    def host_by_autocast(self) -> float:
        """`host`, with the casts that autocast launches."""
        return min(1.0, self.host + limits.AUTOCAST_ADDS * self.issuing)

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
    in_tf32 = _in_tf32(settings) or (tensor >= limits.TENSOR_ABSENT and _in_single(settings))
    return Work(
        min(1.0, busy), sm, tensor, fp32, dram, on_tensor_cores, seen, in_tf32, host, replans
    )


def _in_tf32(settings: Settings | None) -> bool:
    """A program that lets fp32 products run in tf32, which is not PyTorch's default, has some: also
    where the parameters' type is not known."""
    if settings is None or settings.autocast != "" or not uses_tensor_cores(settings):
        return False
    return settings.parameter_dtype in ("float32", None)


def _in_single(settings: Settings | None) -> bool:
    """Nothing is in a half type: what tensor cores do then is tf32, which convolutions use unless
    somebody forbids it."""
    if settings is None:
        return False
    return settings.autocast == "" and settings.parameter_dtype == "float32"


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


def many_convolve(products: Sequence[FrameShare]) -> bool:
    """Of the places with products so many are convolutions that a setting for matrices alone is not
    theirs: cuDNN's run in tf32 unless somebody forbids it."""
    return share_where(products, convolves) > MATRICES * share_held(products)


MATRICES: Final = 0.25
"""Of the samples at products, those at convolutions may be so many."""
TF32_LINE: Final = 'torch.set_float32_matmul_precision("high")'
BF16_LINE: Final = 'with torch.autocast("cuda", torch.bfloat16)'


def precision(work: Work) -> Finding | None:
    """Matrix products in fp32 while the tensor cores rest."""
    if work.tensor >= limits.TENSOR_ABSENT or work.fp32 < limits.FP32_HEAVY:
        return None
    if work.on_tensor_cores or not work.products:
        return None
    if work.castable < ENTER_SHARE:
        return None  # an inverse, a determinant: their arithmetic has no other type
    products = min(1.0, work.fp32 / limits.FP32_FULL, work.castable) * work.busy
    seen = work.fp32, work.dram, work.sm
    tf32, bf16 = (
        _as_far_as_the_host_keeps_up(
            work,
            host,
            min(
                1.0 - on_tensor_cores(*seen, ratio, bytes_left, work.updates),
                _most_of(work.castable, ratio, bytes_left),
            ),
        )
        for ratio, bytes_left, host in (
            (limits.TF32_RATIO, 1.0, work.host),
            (limits.BF16_RATIO, 0.5, work.host_by_autocast),
        )
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
    return estimate("compute", "precision", first, headline, work, advice)


def _most_of(castable: float, ratio: float, bytes_left: float) -> float:
    """Of the time in which the GPU is busy, what such operations save at the most, and the rest by
    its bytes."""
    return castable * (1.0 - 1.0 / ratio) + (1.0 - castable) * (1.0 - bytes_left)


def _as_far_as_the_host_keeps_up(work: Work, host: float, saved: float) -> float:
    """Of a step, where kernels save this part of the time in which the GPU is busy."""
    return min(work.busy * saved, 1.0 - host)


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
    nets = work.busy * (1.0 - work.updates)  # fusing the net leaves an update as it is
    least, most = (nets * (1 - fused(work.dram, part)) for part in limits.FUSION_SAVES)
    found = estimate(
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
    # What products and convolutions move stays: of DiffWave's nothing went (1.03x on an H200).
    low = 1.0 if work.tensor >= limits.TENSOR_SEEN else speedup_of(least)
    return replace(
        found,
        evidence=(*found.evidence, Evidence(text, "gpm")),
        forecast=Forecast(speedup_of((least + most) / 2), low, speedup_of(most)),
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


def half_type(work: Work) -> Finding | None:
    """Products in tf32, on a GPU that does nothing else for long: bf16 takes half the time of the
    ones and moves half the bytes of the other, less what casting takes; attention has kernels of
    its own in bf16. Two LSTMs whose tensor cores worked for 30 % of the time gained nothing (0.98x,
    1.00x on an H200)."""
    if work.tensor < limits.TENSOR_ABSENT or not work.in_tf32:
        return None
    if work.recurs and work.tensor < limits.TENSOR_HEALTHY:
        return None
    bound = speedup_of(1.0 - work.host_by_autocast)
    gives = half_type_gives(work.tensor, work.fp32)
    likely = min(bound, _beside_updates(work, gives * speedup_of(_by_half_type(work))))
    least, most = (min(bound, part * likely) for part in limits.HALF_TYPE_WITHIN)
    if likely < speedup_of(ENTER_SHARE):
        return None
    found = estimate(
        "compute",
        "precision",
        1.0 - 1.0 / likely,
        f"matrix products run in tf32: tensor cores are busy {percent(work.tensor)} of the time, "
        f"memory {percent(work.dram)}",
        work,
        (f"bf16, about {times(likely)}: {HALF}",),
    )
    return replace(found, forecast=Forecast(likely, max(1.0, least), most))


def half_type_gives(tensor: float, fp32: float) -> float:
    """Part of what halves of products and bytes make that bf16 gives, where tensor cores and fp32
    units are active for so much of the busy time: the less the first are, the more of it is casting
    and small kernels; the second are at work in attention and norms."""
    least_tensor, least_fp32 = limits.ATTENDS
    if tensor >= least_tensor and fp32 >= least_fp32:
        return limits.ATTENDS_GIVES
    first, more, most = limits.HALF_TYPE_GIVES
    return min(most, first + more * tensor)


def _by_half_type(work: Work) -> float:
    """The part of a step that goes, where products in tf32 take half their time in bf16, and all
    traffic of the memory half its bytes."""
    of_net = beside_update(work.tensor, work.dram, work.updates)
    return _as_far_as_the_host_keeps_up(work, work.host_by_autocast, halved(*of_net))


def beside_update(tensor: float, dram: float, updates: float) -> tuple[float, float]:
    """Tensor cores and memory while the net is at work, as parts of that time: an update takes
    `updates` of all of it, multiplies nothing and keeps the memory busy."""
    held = max(1e-9, 1.0 - updates)
    return min(1.0, tensor / held), max(0.0, dram - limits.DRAM_FULL * updates) / held


def products_beside_update(
    fp32: float, dram: float, sm: float, updates: float
) -> tuple[float, float, float]:
    """The same of fp32 units, memory and multiprocessors, which an update keeps busy as well."""
    held = max(1e-9, 1.0 - updates)
    products, traffic = beside_update(fp32, dram, updates)
    return products, traffic, max(0.0, sm - limits.SM_FULL * updates) / held


def _beside_updates(work: Work, nets: float) -> float:
    """Of a step whose net becomes so many times as fast, and whose update, in fp32, stays."""
    return 1.0 / (work.updates + (1.0 - work.updates) / nets)


def halved(tensor: float, dram: float) -> float:
    """Half of the time of products and of the memory's traffic, as part of the busy time."""
    return min(1.0, tensor / limits.TENSOR_FULL + moving(dram)) / 2


def estimate(
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
