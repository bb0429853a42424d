"""What PyTorch's allocator could grow to on a GPU."""

from collections.abc import Sequence

from probe.wire.messages import GpuMemory
from tui.observations import GpuUse


def room_of(gpus: Sequence[GpuUse], memory: Sequence[GpuMemory]) -> int | None:
    """Of the target's first GPU: what is free and what the allocator has, or what it may have of
    the device, if that is less. None without a GPU.

    What others hold, and what the process holds beside the allocator (its context, NCCL), is so
    left out whether or not the driver tells whose it is.
    """
    if not gpus:
        return None
    gpu = gpus[0]
    held = memory[-1].reserved if memory else gpu.target_memory_bytes or 0
    room = gpu.memory_total_bytes - max(0, gpu.memory_used_bytes - held)
    fraction = memory[-1].fraction if memory else None
    return room if fraction is None else min(room, round(fraction * gpu.memory_total_bytes))
