"""A GPU whose memory is as good as full."""

from tui.verdict import policy
from tui.verdict.batch_room import batch_room
from tui.verdict.figures import mib, percent
from tui.verdict.findings import Note
from tui.verdict.window import Window


def memory_full(window: Window) -> Note | None:
    """Full memory is no cause of slow steps, but the next longer batch may not fit."""
    room = batch_room(window)
    if room is None or room.full < policy.MEMORY_FULL:
        return None
    text = f"the GPU's memory is {percent(room.full)} full at the height of a step: "
    if room.activations >= room.kept:
        text += "activation checkpointing (torch.utils.checkpoint) frees most of "
        text += f"{mib(room.activations)}; half the batch with gradient accumulation half of it"
    else:
        text += f"{mib(room.kept)} stay from step to step: bf16 weights, an 8-bit or a sharded "
        text += "optimizer (FSDP)"
    retries = window.gpu_memory[-1].retries
    cost = f"{retries:,} allocations had to empty the cache first" if retries else None
    return Note(text, cost, "hook")
