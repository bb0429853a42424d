"""What a run gets done, in words: samples, tokens, MFU, roofline, energy; and its own numbers."""

from typing import Final

from ..model.noted import NotFinite, Numerics, Throughput
from . import numbers

NORM: Final = "gradient norm"
MOST_SHORT: Final = 4
LOW: Final = 60.0
"""Percent of the peak. Below it on both counts neither arithmetic nor memory bounds a GPU: Nsight
Compute's speed-of-light rule."""
CONVENTION: Final = (
    "dense products, convolutions and attention, forward and backward; a causal mask in full"
)


def throughput_words(found: Throughput) -> list[str]:
    """A line each for units, FLOPs, the roofline and energy; what is not known is left out."""
    return [
        line
        for line in (
            _units(found),
            _flops(found),
            _roofline(found),
            _smi(found),
        )
        if line
    ]


def short_words(found: Throughput | None, numerics: Numerics | None) -> list[str]:
    """For a line on the screen: "101k tokens/s", "MFU 42%", "loss 0.312"; what is known of them."""
    words = []
    if found is not None and found.tokens_s is not None:
        about = "~" if found.tokens_inferred else ""
        words.append(f"{about}{numbers.digits(found.tokens_s)} tokens/s")
    if found is not None and found.mfu is not None:
        words.append(f"MFU {found.mfu:.0%}")
    for one in () if numerics is None else numerics.figures:
        if one.name != NORM:
            words.append(f"{one.name} {'not finite' if one.value is None else f'{one.value:.3g}'}")
    return words[:MOST_SHORT]


def _units(found: Throughput) -> str:
    parts = []
    if found.samples_s is not None:
        parts.append(f"{numbers.digits(found.samples_s)} samples/s")
    if found.tokens_s is not None:
        how = " (inferred: batch x sequence, padding included)" if found.tokens_inferred else ""
        parts.append(f"{numbers.digits(found.tokens_s)} tokens/s{how}")
    if found.samples_joule is not None:
        per = found.samples_joule
        text = f"{numbers.digits(per)} samples/J" if per >= 1 else f"{numbers.digits(1 / per)} J"
        parts.append(text if per >= 1 else f"{text} per sample")
    return " · ".join(parts)


def _flops(found: Throughput) -> str:
    if found.flops_step is None or found.flops_s is None:
        return f"FLOPs not counted: {found.why_no_flops}" if found.why_no_flops else ""
    how = "given by probe.units" if found.flops_given else f"counted once: {CONVENTION}"
    text = f"{flops(found.flops_step)} per step ({how}) · {flops(found.flops_s)}/s"
    if found.mfu is None or found.peak_flops_s is None:
        return f"{text} · no MFU: the peak of this device and type is not known"
    return f"{text} · MFU {found.mfu:.1%} of {flops(found.peak_flops_s)}/s ({found.peak_of}, dense)"


def flops(value: float) -> str:
    """1.28e13 -> "12.8 TFLOP"."""
    for unit, size in (("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9)):
        if value >= size:
            return f"{numbers.digits(value / size)} {unit}"
    return f"{numbers.digits(value / 1e6)} MFLOP"


def _roofline(found: Throughput) -> str:
    tensor, dram = found.tensor_percent, found.dram_percent
    if tensor is None or dram is None:
        return ""
    text = f"roofline: tensor cores {tensor:.0f}%, memory bandwidth {dram:.0f}% of the time"
    if max(tensor, dram) < LOW:
        return f"{text}: neither bounds it (below {LOW:.0f}%)"
    return f"{text}: {'arithmetic' if tensor >= dram else 'memory'} is nearer its limit"


def _smi(found: Throughput) -> str:
    """Where nvidia-smi's figure would mislead."""
    shown, tensor, dram = found.utilization_percent, found.tensor_percent, found.dram_percent
    if shown is None or tensor is None or dram is None or shown < 90 or max(tensor, dram) >= LOW:
        return ""
    return (
        f"nvidia-smi shows {shown:.0f}%: some kernel ran at nearly every moment, however small. "
        f"The tensor cores did for {tensor:.0f}% of the time"
    )


def not_finite_words(first: NotFinite, is_over: bool) -> str:
    """ "loss is NaN since step 300", "acc was NaN at step 7"."""
    if is_over:
        when = f"{first.what} before" if first.before else f"{first.what} at"
        return f"{first.name} was {when} step {first.step}"
    when = "since before" if first.before else "since"
    return f"{first.name} is {first.what} {when} step {first.step}"


def numerics_words(found: Numerics) -> list[str]:
    """ "loss 0.312 · gradient norm 1.4", and what is wrong with them."""
    lines = []
    if found.not_finite is not None:
        first = found.not_finite
        after = f", after step {first.step - first.every}" if first.every > 1 else ""
        lines.append(f"{not_finite_words(first, found.is_over)}{after}")
    if found.skipped:
        lines.append(f"GradScaler has skipped the last {numbers.count(found.skipped)} steps")
    shown = [
        f"{one.name} {'not finite' if one.value is None else f'{one.value:.4g}'}"
        for one in found.figures
    ]
    if shown:
        lines.append(" · ".join(shown))
    return lines
