"""What a busy GPU is busy with, by its counters."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from ..settings import Settings
from .gpu_activity import GpuActivity
from .thresholds import gpu as limits
from .thresholds.hysteresis import ENTER_SHARE
from .window import StepWindow

BusyPart = Literal["used", "busy", "underfilled", "fp32", "collectives", "others"]
"""Kernels run: by the counters well used; where there are none, just busy; on few
multiprocessors; arithmetic in fp32; waiting for other ranks; or another process's."""
BUSY: Final[tuple[BusyPart, ...]] = get_args(BusyPart)


def busy_parts(
    busy: float, activity: GpuActivity | None, window: StepWindow
) -> dict[BusyPart, float]:
    """Share out the time in which kernels ran, 0 to 1."""
    found: dict[BusyPart, float] = {}
    if activity is not None and activity.others_sm:
        found["others"] = min(busy, activity.others_sm / 100)
    own = busy - found.get("others", 0.0)
    well: BusyPart = "used"
    poorly: BusyPart | None = None
    amount = 0.0
    if (work := _units(activity)) is None:
        well = "busy"
    else:
        poorly, amount = _poorly_used(work, window, own)
    if poorly is not None:
        found[poorly] = own * amount
    found[well] = own * (1.0 - amount)
    return found


@dataclass(frozen=True, slots=True)
class _Units:
    """Activity as parts of the time in which the GPU was busy at all, 0 to 1."""

    sm: float
    tensor: float
    fp32: float
    dram: float


def _units(activity: GpuActivity | None) -> _Units | None:
    if activity is None or not activity.busy:
        return None
    sm, tensor, fp32, dram = activity.sm, activity.tensor, activity.fp32, activity.dram
    if sm is None or tensor is None or fp32 is None or dram is None:
        return None
    return _Units(*(min(1.0, one / activity.busy) for one in (sm, tensor, fp32, dram)))


def _poorly_used(work: _Units, window: StepWindow, own: float) -> tuple[BusyPart | None, float]:
    """Which part of the busy time, which holds `own` of all, is not used well, and how much of it,
    0 to 1; by the thresholds of `compute`."""
    known = window.collectives
    if known is not None and known.share >= ENTER_SHARE:
        return "collectives", min(1.0, known.share / own) if own else 0.0
    rests = work.tensor < limits.TENSOR_ABSENT and not uses_tensor_cores(window.settings)
    if rests and work.fp32 >= limits.FP32_HEAVY:
        return "fp32", min(1.0, work.fp32 / limits.FP32_FULL)
    if window.world_size > 1 and known is None:
        return None, 0.0  # collectives look the same
    low = work.tensor < limits.UNDERFILLED_TENSOR and work.dram < limits.UNDERFILLED_DRAM
    if low and work.sm < limits.UNDERFILLED_SM:
        return "underfilled", 1.0 - work.sm
    return None, 0.0


def in_half_type(settings: Settings) -> bool:
    """By its settings products run in a type of 16 bits."""
    halves = ("bfloat16", "float16")
    return settings.autocast in halves or settings.parameter_dtype in halves


def uses_tensor_cores(settings: Settings | None) -> bool:
    """By its settings products run in a half type or tf32."""
    if settings is None:
        return False
    if in_half_type(settings):
        return True
    return settings.matmul_precision in ("high", "medium") and settings.cudnn_tf32 is not False
