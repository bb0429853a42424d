"""How the GPUs were over a stretch of time: who else used them, what held their clocks back."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tui.observations import GpuUse, OtherProcess
from tui.verdict.window import Neighbour

HARMLESS: Final = frozenset({"power cap"})
"""Reasons that do not slow a GPU down more than is meant: large ones run at their cap."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Of several GPUs the one that others use most, as a step waits for the last of its GPUs."""

    throttled: float
    throttle_reasons: tuple[str, ...]
    clock_lost: float | None
    others: int
    others_sm: float | None
    neighbours: tuple[Neighbour, ...]


def conditions(uses: Sequence[GpuUse], latest: Sequence[GpuUse]) -> Conditions:
    """From the readings of a stretch, and the newest one, which says who is there now."""
    slowed = [gpu for gpu in uses if slowed_by(gpu)]
    reasons = Counter(reason for gpu in slowed for reason in sorted(slowed_by(gpu)))
    lost = [_clock_lost(gpu) for gpu in slowed]
    known = [part for part in lost if part is not None]
    crowd = max((gpu.others for gpu in latest), key=len, default=())
    return Conditions(
        throttled=len(slowed) / len(uses) if uses else 0.0,
        throttle_reasons=tuple(reason for reason, _ in reasons.most_common()),
        clock_lost=sum(known) / len(uses) if len(known) == len(lost) and uses else None,
        others=len(crowd),
        others_sm=_others_sm(uses or latest),
        neighbours=tuple(map(_neighbour, sorted(crowd, key=lambda one: -(one.sm_percent or 0)))),
    )


def slowed_by(gpu: GpuUse) -> frozenset[str]:
    """Reasons that slow a GPU down."""
    return frozenset(gpu.throttle_reasons) - HARMLESS


def _clock_lost(gpu: GpuUse) -> float | None:
    """Part of its speed that it lacks; None where its clock or its highest is not told."""
    if gpu.sm_clock_mhz is None or not gpu.max_sm_clock_mhz:
        return None
    return max(0.0, 1 - gpu.sm_clock_mhz / gpu.max_sm_clock_mhz)


def _others_sm(uses: Sequence[GpuUse]) -> float | None:
    """Percent of the busiest device's time; None where nobody can be told from the target."""
    devices: dict[int, list[float]] = {}
    for gpu in uses:
        told = [other.sm_percent for other in gpu.others if other.sm_percent is not None]
        if gpu.target_memory_bytes is not None and len(told) == len(gpu.others):
            devices.setdefault(gpu.index, []).append(sum(told))
    means = (sum(told) / len(told) for told in devices.values())
    return min(100.0, max(means)) if devices else None


def _neighbour(other: OtherProcess) -> Neighbour:
    return Neighbour(other.pid, other.name, other.memory_bytes, other.sm_percent)
