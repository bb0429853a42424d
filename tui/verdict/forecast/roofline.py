"""What a busy GPU's own work would take otherwise, from its counters and measured peaks.

Every argument and result is a part of the time in which the GPU is busy, 0 to 1.
"""

from tui.verdict import policy


def on_tensor_cores(fp32: float, dram: float, sm: float, ratio: float) -> float:
    """Time that is left when products run `ratio` times as fast as in fp32.

    One after the other: the products at the new peak, every byte at memory's peak, and the
    multiprocessors' pauses between kernels, which no number format shortens.
    """
    products = min(1.0, fp32 / policy.FP32_FULL)
    between = max(0.0, 1.0 - sm / policy.SM_FULL)
    return min(1.0, products / ratio + moving(dram) + between)


def moving(dram: float) -> float:
    """Time that memory traffic takes at the rate of a pure copy."""
    return min(1.0, dram / policy.DRAM_FULL)


def fused(dram: float, saved: float) -> float:
    """Time that is left when fusing kernels saves this part of the memory traffic."""
    return 1.0 - saved * moving(dram)


def filled(tensor: float, fp32: float, dram: float) -> float:
    """The least time in which a device without idle units does the same: its busiest unit's."""
    busiest = max(tensor / policy.TENSOR_FULL, fp32 / policy.FP32_FULL, moving(dram))
    return min(1.0, busiest)
