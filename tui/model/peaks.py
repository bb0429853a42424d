"""Peak FLOP/s of GPUs: dense, of one device, by its data sheet. Who is not in here has no MFU.

Sources, all "without sparsity" (half of what the sheets print with it): NVIDIA's data sheets of
A100 (2021), H100 (2023: SXM, PCIe, NVL), H200 (2024), B200 and GB200 (2025), L40S and L4 (2023),
A10 and A40 (2021), V100 (2020), T4 (2019), RTX 4090 (Ada white paper) and RTX 3090 (Ampere white
paper; both with fp32 accumulation); AMD's of MI300X (2023) and MI355X (2025). torch's own list
(`_inductor/analysis/device_info.py`) has the H100 with sparsity, twice as high.
"""

import re
from typing import Final, Literal, NamedTuple

Precision = Literal["bfloat16", "float16", "tf32", "float32"]
T: Final = 1e12


class Peak(NamedTuple):
    """TFLOP/s of one device."""

    pattern: str
    half: float
    """bfloat16 and float16 with fp32 accumulation."""
    tf32: float | None
    float32: float
    """Without tensor cores."""
    has_bfloat16: bool = True


PEAKS: Final = (
    Peak(r"H200 NVL", 835, 417, 60),
    Peak(r"H200", 989, 494, 67),
    Peak(r"H100 NVL", 835, 417, 60),
    Peak(r"H100 PCIe", 756, 378, 51),
    Peak(r"H100", 989, 494, 67),
    Peak(r"H800", 989, 494, 67),
    Peak(r"H20\b", 148, 74, 44),
    Peak(r"GB300", 2500, 1250, 80),
    Peak(r"GB200", 2500, 1250, 80),
    Peak(r"B200", 2250, 1125, 75),
    Peak(r"A100|A800", 312, 156, 19.5),
    Peak(r"A40\b", 149.7, 74.8, 37.4),
    Peak(r"A10\b", 125, 62.5, 31.2),
    Peak(r"L40S", 362, 183, 91.6),
    Peak(r"L4\b", 121, 60, 30.3),
    Peak(r"V100", 125, None, 15.7, has_bfloat16=False),
    Peak(r"T4\b", 65, None, 8.1, has_bfloat16=False),
    Peak(r"RTX 4090\b(?! D)", 165.2, 82.6, 82.6),
    Peak(r"RTX 3090\b(?! Ti)", 71, 35.6, 35.6),
    Peak(r"MI300X", 1307, 653, 163.4),
    Peak(r"MI355X", 2500, None, 157),
)
"""The first pattern that is found in a device's name."""


def mixed_peak_flops_s(
    device: str, precision: Precision, of_convolutions: Precision, convolved: float
) -> float | None:
    """Peak of a step of which `convolved` of the FLOPs, 0 to 1, are convolutions in a type of their
    own, FLOP/s: by the time that each part takes at least. Without tensor cores tf32 is fp32."""
    peaks = [
        peak_flops_s(device, one) or (peak_flops_s(device, "float32") if one == "tf32" else None)
        for one in (precision, of_convolutions)
    ]
    matrices, convolutions = peaks
    if not matrices or not convolutions:
        return None
    return 1.0 / ((1.0 - convolved) / matrices + convolved / convolutions)


def peak_flops_s(device: str, precision: Precision) -> float | None:
    """Dense peak of a device by its name, FLOP/s; None for a device that is not known, a part of
    one (MIG), or a type that it has no products of."""
    if "MIG" in device:
        return None
    for peak in PEAKS:
        if re.search(peak.pattern, device):
            if precision == "float32":
                return peak.float32 * T
            if precision == "tf32":
                return None if peak.tf32 is None else peak.tf32 * T
            if precision == "bfloat16" and not peak.has_bfloat16:
                return None
            return peak.half * T
    return None
