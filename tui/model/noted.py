"""What a run says of itself beside its times: its loss, its norm, its tokens and FLOPs."""

from dataclasses import dataclass

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """The newest value of one number."""

    name: str
    """ "loss", "gradient norm"."""
    value: float | None
    """None: it is not finite."""
    step: int


class NotFinite(msgspec.Struct, frozen=True):
    """The first number that was NaN or infinite; once it is finite again, the next one."""

    name: str
    what: str
    """ "NaN", "inf", "-inf"."""
    step: int
    every: int
    """One step in so many was looked at: the steps before it since the last look may be it."""
    before: bool = False
    """It was so before the first step that this monitor knows, which is `step`."""


@dataclass(frozen=True, slots=True)
class Numerics:
    """What is known of the run's numbers."""

    figures: tuple[Figure, ...]
    not_finite: NotFinite | None
    skipped: int
    """Steps in a row that a GradScaler has skipped by now."""

    @property
    def is_over(self) -> bool:
        """What was not finite is again."""
        first = self.not_finite
        return first is not None and any(
            one.name == first.name and one.value is not None for one in self.figures
        )


@dataclass(frozen=True, slots=True)
class Throughput:
    """What the run gets done, in the units that people compare. None: not known."""

    samples_s: float | None
    tokens_s: float | None
    tokens_inferred: bool
    """By how a batch looks, and not by `probe.units`."""
    flops_step: float | None
    flops_given: bool
    """By `probe.units`, and not counted."""
    why_no_flops: str
    """Where they were asked for and not counted; else ""."""
    flops_s: float | None
    peak_flops_s: float | None
    """Of one GPU, dense, in the type of the products; None for a device that is not known."""
    peak_of: str
    """ "NVIDIA H200, bfloat16"."""
    mfu: float | None
    """0 to 1."""
    tensor_percent: float | None
    dram_percent: float | None
    """Means over the window, as the next."""
    utilization_percent: float | None
    """What nvidia-smi shows."""
    samples_joule: float | None
